"""The library's verdict against real gVisor restores on emulated machines."""
