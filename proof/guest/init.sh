#!/bin/busybox sh
# The first program of the emulated machine: it unpacks the jobs from one disk, runs them, and packs the results
# on another. Lines that begin with "proof:" go to the console, where the campaign reads them.
b=/bin/busybox

if [ "$1" != inner ]; then
    # runsc calls pivot_root, which the kernel refuses on an initramfs itself, but not on a bind mount of it.
    $b mount --bind / /root
    cd /root || exit
    $b mount --move . /
    exec $b chroot . $b sh /init inner
fi

$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
$b --install -s /bin
export PATH=/bin HOME=/
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
    insmod "/modules/$module.ko"
done

if cd /tmp && tar -xf /dev/vda; then
    echo "proof: up"
    sh /jobs.sh /tmp
    uname -r >results/kernel
    cat /proc/cpuinfo >results/cpuinfo
    touch results/complete
    tar -cf /dev/vdb -C results . && sync && echo "proof: written"
fi
poweroff -f
