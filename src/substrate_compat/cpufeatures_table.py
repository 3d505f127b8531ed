"""Every CPU feature that gVisor names: one row a feature.

Source: `google/gvisor`, package `pkg/cpuid`, commit 3c5eee17dc45659fb86843531074f38e78e0cc35
(2026-08-21): numbers and names as its `cpuid.AllFeatures()` gives them, constants from
`features_amd64.go` and `features_arm64.go`. The module of 2026-09-05 prints the same 173 amd64 names
and none above bit 255.

The number of a row is its bit in the mask. On amd64 it is `32 * block + bit`, the block being one
CPUID register (`CPUID_REGISTERS`); on arm64 it is the bit of the ELF HWCAP word. Each row's comment
gives the constant in gVisor and, on amd64, block and bit.

To add a row by hand: take the constant's block and bit from gVisor's table, and the name that
`runsc cpu-features` prints, which is often not the constant's (`pni` is SSE3, `clfushopt` is spelled
so); put the row at its number. Intel and AMD never reassign a CPUID bit, so a row, once in, never
changes.

Bits 85 (AVX512IFMA) and 86 (PCOMMIT) have a constant but no name in gVisor, so they have no row.
Rows 260 and 261 are not `confirmed`: bit and register are the hardware's and the name is Linux's,
while gVisor's own table ends at 255 (its issue 10991 asks for this register).
"""

from enum import StrEnum

import attrs

__all__ = ["AMD64_FEATURES", "ARM64_FEATURES", "CPUID_REGISTERS", "Architecture", "Feature"]


class Architecture(StrEnum):
    """A processor architecture, by the name that Go and Kubernetes give it."""

    AMD64 = "amd64"
    ARM64 = "arm64"


@attrs.frozen
class Feature:
    """One CPU feature of one architecture.

    Attributes:
        value: the bit in the mask, counted from 0 for the least significant.
        name: what `runsc cpu-features` prints.
        constant: the constant in gVisor's source, without its `X86Feature` or `ARM64Feature`.
        in_proc_cpuinfo: whether gVisor shows it among a guest's `flags` or `Features`.
        confirmed: whether gVisor's own table has it.
    """

    value: int
    name: str
    constant: str
    in_proc_cpuinfo: bool = True
    confirmed: bool = True


CPUID_REGISTERS: tuple[tuple[int, int, str], ...] = (
    (0x1, 0, "ecx"),  # block 0: CPUID.01H:ECX
    (0x1, 0, "edx"),  # block 1: CPUID.01H:EDX
    (0x7, 0, "ebx"),  # block 2: CPUID.(07H,0):EBX
    (0x7, 0, "ecx"),  # block 3: CPUID.(07H,0):ECX
    (0xD, 1, "eax"),  # block 4: CPUID.(0DH,1):EAX
    (0x80000001, 0, "ecx"),  # block 5: CPUID.80000001H:ECX
    (0x80000001, 0, "edx"),  # block 6: CPUID.80000001H:EDX
    (0x7, 0, "edx"),  # block 7: CPUID.(07H,0):EDX
    (0x7, 1, "eax"),  # block 8: CPUID.(07H,1):EAX
)
"""The CPUID register of each block, in order: leaf, subleaf, register (Intel SDM, volume 2A)."""

AMD64_FEATURES: tuple[Feature, ...] = (
    Feature(0, "pni", "SSE3"),  # X86FeatureSSE3: block 0, bit 0
    Feature(1, "pclmulqdq", "PCLMULDQ"),  # X86FeaturePCLMULDQ: block 0, bit 1
    Feature(2, "dtes64", "DTES64"),  # X86FeatureDTES64: block 0, bit 2
    Feature(3, "monitor", "MONITOR"),  # X86FeatureMONITOR: block 0, bit 3
    Feature(4, "ds_cpl", "DSCPL"),  # X86FeatureDSCPL: block 0, bit 4
    Feature(5, "vmx", "VMX"),  # X86FeatureVMX: block 0, bit 5
    Feature(6, "smx", "SMX"),  # X86FeatureSMX: block 0, bit 6
    Feature(7, "est", "EST"),  # X86FeatureEST: block 0, bit 7
    Feature(8, "tm2", "TM2"),  # X86FeatureTM2: block 0, bit 8
    Feature(9, "ssse3", "SSSE3"),  # X86FeatureSSSE3: block 0, bit 9
    Feature(10, "cid", "CNXTID"),  # X86FeatureCNXTID: block 0, bit 10
    Feature(11, "sdbg", "SDBG"),  # X86FeatureSDBG: block 0, bit 11
    Feature(12, "fma", "FMA"),  # X86FeatureFMA: block 0, bit 12
    Feature(13, "cx16", "CX16"),  # X86FeatureCX16: block 0, bit 13
    Feature(14, "xtpr", "XTPR"),  # X86FeatureXTPR: block 0, bit 14
    Feature(15, "pdcm", "PDCM"),  # X86FeaturePDCM: block 0, bit 15
    Feature(17, "pcid", "PCID"),  # X86FeaturePCID: block 0, bit 17
    Feature(18, "dca", "DCA"),  # X86FeatureDCA: block 0, bit 18
    Feature(19, "sse4_1", "SSE4_1"),  # X86FeatureSSE4_1: block 0, bit 19
    Feature(20, "sse4_2", "SSE4_2"),  # X86FeatureSSE4_2: block 0, bit 20
    Feature(21, "x2apic", "X2APIC"),  # X86FeatureX2APIC: block 0, bit 21
    Feature(22, "movbe", "MOVBE"),  # X86FeatureMOVBE: block 0, bit 22
    Feature(23, "popcnt", "POPCNT"),  # X86FeaturePOPCNT: block 0, bit 23
    Feature(24, "tsc_deadline_timer", "TSCD"),  # X86FeatureTSCD: block 0, bit 24
    Feature(25, "aes", "AES"),  # X86FeatureAES: block 0, bit 25
    Feature(26, "xsave", "XSAVE"),  # X86FeatureXSAVE: block 0, bit 26
    Feature(27, "osxsave", "OSXSAVE", in_proc_cpuinfo=False),  # X86FeatureOSXSAVE: block 0, bit 27
    Feature(28, "avx", "AVX"),  # X86FeatureAVX: block 0, bit 28
    Feature(29, "f16c", "F16C"),  # X86FeatureF16C: block 0, bit 29
    Feature(30, "rdrand", "RDRAND"),  # X86FeatureRDRAND: block 0, bit 30
    Feature(31, "hypervisor", "Hypervisor"),  # X86FeatureHypervisor: block 0, bit 31
    Feature(32, "fpu", "FPU"),  # X86FeatureFPU: block 1, bit 0
    Feature(33, "vme", "VME"),  # X86FeatureVME: block 1, bit 1
    Feature(34, "de", "DE"),  # X86FeatureDE: block 1, bit 2
    Feature(35, "pse", "PSE"),  # X86FeaturePSE: block 1, bit 3
    Feature(36, "tsc", "TSC"),  # X86FeatureTSC: block 1, bit 4
    Feature(37, "msr", "MSR"),  # X86FeatureMSR: block 1, bit 5
    Feature(38, "pae", "PAE"),  # X86FeaturePAE: block 1, bit 6
    Feature(39, "mce", "MCE"),  # X86FeatureMCE: block 1, bit 7
    Feature(40, "cx8", "CX8"),  # X86FeatureCX8: block 1, bit 8
    Feature(41, "apic", "APIC"),  # X86FeatureAPIC: block 1, bit 9
    Feature(43, "sep", "SEP"),  # X86FeatureSEP: block 1, bit 11
    Feature(44, "mtrr", "MTRR"),  # X86FeatureMTRR: block 1, bit 12
    Feature(45, "pge", "PGE"),  # X86FeaturePGE: block 1, bit 13
    Feature(46, "mca", "MCA"),  # X86FeatureMCA: block 1, bit 14
    Feature(47, "cmov", "CMOV"),  # X86FeatureCMOV: block 1, bit 15
    Feature(48, "pat", "PAT"),  # X86FeaturePAT: block 1, bit 16
    Feature(49, "pse36", "PSE36"),  # X86FeaturePSE36: block 1, bit 17
    Feature(50, "pn", "PSN"),  # X86FeaturePSN: block 1, bit 18
    Feature(51, "clflush", "CLFSH"),  # X86FeatureCLFSH: block 1, bit 19
    Feature(53, "dts", "DS"),  # X86FeatureDS: block 1, bit 21
    Feature(54, "acpi", "ACPI"),  # X86FeatureACPI: block 1, bit 22
    Feature(55, "mmx", "MMX"),  # X86FeatureMMX: block 1, bit 23
    Feature(56, "fxsr", "FXSR"),  # X86FeatureFXSR: block 1, bit 24
    Feature(57, "sse", "SSE"),  # X86FeatureSSE: block 1, bit 25
    Feature(58, "sse2", "SSE2"),  # X86FeatureSSE2: block 1, bit 26
    Feature(59, "ss", "SS"),  # X86FeatureSS: block 1, bit 27
    Feature(60, "ht", "HTT"),  # X86FeatureHTT: block 1, bit 28
    Feature(61, "tm", "TM"),  # X86FeatureTM: block 1, bit 29
    Feature(62, "ia64", "IA64"),  # X86FeatureIA64: block 1, bit 30
    Feature(63, "pbe", "PBE"),  # X86FeaturePBE: block 1, bit 31
    Feature(64, "fsgsbase", "FSGSBase"),  # X86FeatureFSGSBase: block 2, bit 0
    Feature(65, "tsc_adjust", "TSC_ADJUST"),  # X86FeatureTSC_ADJUST: block 2, bit 1
    Feature(67, "bmi1", "BMI1"),  # X86FeatureBMI1: block 2, bit 3
    Feature(68, "hle", "HLE"),  # X86FeatureHLE: block 2, bit 4
    Feature(69, "avx2", "AVX2"),  # X86FeatureAVX2: block 2, bit 5
    Feature(
        70, "fdp_excptn_only", "FDP_EXCPTN_ONLY", in_proc_cpuinfo=False
    ),  # X86FeatureFDP_EXCPTN_ONLY: block 2, bit 6
    Feature(71, "smep", "SMEP"),  # X86FeatureSMEP: block 2, bit 7
    Feature(72, "bmi2", "BMI2"),  # X86FeatureBMI2: block 2, bit 8
    Feature(73, "erms", "ERMS"),  # X86FeatureERMS: block 2, bit 9
    Feature(74, "invpcid", "INVPCID"),  # X86FeatureINVPCID: block 2, bit 10
    Feature(75, "rtm", "RTM"),  # X86FeatureRTM: block 2, bit 11
    Feature(76, "cqm", "CQM"),  # X86FeatureCQM: block 2, bit 12
    Feature(77, "fpcsds", "FPCSDS", in_proc_cpuinfo=False),  # X86FeatureFPCSDS: block 2, bit 13
    Feature(78, "mpx", "MPX"),  # X86FeatureMPX: block 2, bit 14
    Feature(79, "rdt_a", "RDT"),  # X86FeatureRDT: block 2, bit 15
    Feature(80, "avx512f", "AVX512F"),  # X86FeatureAVX512F: block 2, bit 16
    Feature(81, "avx512dq", "AVX512DQ"),  # X86FeatureAVX512DQ: block 2, bit 17
    Feature(82, "rdseed", "RDSEED"),  # X86FeatureRDSEED: block 2, bit 18
    Feature(83, "adx", "ADX"),  # X86FeatureADX: block 2, bit 19
    Feature(84, "smap", "SMAP"),  # X86FeatureSMAP: block 2, bit 20
    Feature(87, "clfushopt", "CLFLUSHOPT", in_proc_cpuinfo=False),  # X86FeatureCLFLUSHOPT: block 2, bit 23
    Feature(88, "clwb", "CLWB"),  # X86FeatureCLWB: block 2, bit 24
    Feature(89, "ipt", "IPT", in_proc_cpuinfo=False),  # X86FeatureIPT: block 2, bit 25
    Feature(90, "avx512pf", "AVX512PF"),  # X86FeatureAVX512PF: block 2, bit 26
    Feature(91, "avx512er", "AVX512ER"),  # X86FeatureAVX512ER: block 2, bit 27
    Feature(92, "avx512cd", "AVX512CD"),  # X86FeatureAVX512CD: block 2, bit 28
    Feature(93, "sha_ni", "SHA"),  # X86FeatureSHA: block 2, bit 29
    Feature(94, "avx512bw", "AVX512BW"),  # X86FeatureAVX512BW: block 2, bit 30
    Feature(95, "avx512vl", "AVX512VL"),  # X86FeatureAVX512VL: block 2, bit 31
    Feature(
        96, "prefetchwt1", "PREFETCHWT1", in_proc_cpuinfo=False
    ),  # X86FeaturePREFETCHWT1: block 3, bit 0
    Feature(97, "avx512vbmi", "AVX512VBMI"),  # X86FeatureAVX512VBMI: block 3, bit 1
    Feature(98, "umip", "UMIP"),  # X86FeatureUMIP: block 3, bit 2
    Feature(99, "pku", "PKU"),  # X86FeaturePKU: block 3, bit 3
    Feature(100, "ospke", "OSPKE"),  # X86FeatureOSPKE: block 3, bit 4
    Feature(101, "waitpkg", "WAITPKG"),  # X86FeatureWAITPKG: block 3, bit 5
    Feature(102, "avx512_vbmi2", "AVX512_VBMI2"),  # X86FeatureAVX512_VBMI2: block 3, bit 6
    Feature(103, "cet_ss", "CET_SS", in_proc_cpuinfo=False),  # X86FeatureCET_SS: block 3, bit 7
    Feature(104, "gfni", "GFNI"),  # X86FeatureGFNI: block 3, bit 8
    Feature(105, "vaes", "VAES"),  # X86FeatureVAES: block 3, bit 9
    Feature(106, "vpclmulqdq", "VPCLMULQDQ"),  # X86FeatureVPCLMULQDQ: block 3, bit 10
    Feature(107, "avx512_vnni", "AVX512_VNNI"),  # X86FeatureAVX512_VNNI: block 3, bit 11
    Feature(108, "avx512_bitalg", "AVX512_BITALG"),  # X86FeatureAVX512_BITALG: block 3, bit 12
    Feature(109, "tme", "TME"),  # X86FeatureTME: block 3, bit 13
    Feature(110, "avx512_vpopcntdq", "AVX512_VPOPCNTDQ"),  # X86FeatureAVX512_VPOPCNTDQ: block 3, bit 14
    Feature(112, "la57", "LA57"),  # X86FeatureLA57: block 3, bit 16
    Feature(118, "rdpid", "RDPID"),  # X86FeatureRDPID: block 3, bit 22
    Feature(121, "cldemote", "CLDEMOTE"),  # X86FeatureCLDEMOTE: block 3, bit 25
    Feature(123, "movdiri", "MOVDIRI"),  # X86FeatureMOVDIRI: block 3, bit 27
    Feature(124, "movdir64b", "MOVDIR64B"),  # X86FeatureMOVDIR64B: block 3, bit 28
    Feature(128, "xsaveopt", "XSAVEOPT"),  # X86FeatureXSAVEOPT: block 4, bit 0
    Feature(129, "xsavec", "XSAVEC"),  # X86FeatureXSAVEC: block 4, bit 1
    Feature(130, "xgetbv1", "XGETBV1"),  # X86FeatureXGETBV1: block 4, bit 2
    Feature(131, "xsaves", "XSAVES"),  # X86FeatureXSAVES: block 4, bit 3
    Feature(160, "lahf_lm", "LAHF64"),  # X86FeatureLAHF64: block 5, bit 0
    Feature(161, "cmp_legacy", "CMP_LEGACY"),  # X86FeatureCMP_LEGACY: block 5, bit 1
    Feature(162, "svm", "SVM"),  # X86FeatureSVM: block 5, bit 2
    Feature(163, "extapic", "EXTAPIC"),  # X86FeatureEXTAPIC: block 5, bit 3
    Feature(164, "cr8_legacy", "CR8_LEGACY"),  # X86FeatureCR8_LEGACY: block 5, bit 4
    Feature(165, "abm", "LZCNT"),  # X86FeatureLZCNT: block 5, bit 5
    Feature(166, "sse4a", "SSE4A"),  # X86FeatureSSE4A: block 5, bit 6
    Feature(167, "misalignsse", "MISALIGNSSE"),  # X86FeatureMISALIGNSSE: block 5, bit 7
    Feature(168, "3dnowprefetch", "PREFETCHW"),  # X86FeaturePREFETCHW: block 5, bit 8
    Feature(169, "osvw", "OSVW"),  # X86FeatureOSVW: block 5, bit 9
    Feature(170, "ibs", "IBS"),  # X86FeatureIBS: block 5, bit 10
    Feature(171, "xop", "XOP"),  # X86FeatureXOP: block 5, bit 11
    Feature(172, "skinit", "SKINIT"),  # X86FeatureSKINIT: block 5, bit 12
    Feature(173, "wdt", "WDT"),  # X86FeatureWDT: block 5, bit 13
    Feature(175, "lwp", "LWP"),  # X86FeatureLWP: block 5, bit 15
    Feature(176, "fma4", "FMA4"),  # X86FeatureFMA4: block 5, bit 16
    Feature(177, "tce", "TCE"),  # X86FeatureTCE: block 5, bit 17
    Feature(181, "tbm", "TBM"),  # X86FeatureTBM: block 5, bit 21
    Feature(182, "topoext", "TOPOLOGY"),  # X86FeatureTOPOLOGY: block 5, bit 22
    Feature(183, "perfctr_core", "PERFCTR_CORE"),  # X86FeaturePERFCTR_CORE: block 5, bit 23
    Feature(184, "perfctr_nb", "PERFCTR_NB"),  # X86FeaturePERFCTR_NB: block 5, bit 24
    Feature(186, "bpext", "BPEXT"),  # X86FeatureBPEXT: block 5, bit 26
    Feature(187, "ptsc", "PERFCTR_TSC"),  # X86FeaturePERFCTR_TSC: block 5, bit 27
    Feature(188, "perfctr_llc", "PERFCTR_LLC"),  # X86FeaturePERFCTR_LLC: block 5, bit 28
    Feature(189, "mwaitx", "MWAITX"),  # X86FeatureMWAITX: block 5, bit 29
    Feature(
        190, "ad_mask_extn", "ADMSKEXTN", in_proc_cpuinfo=False
    ),  # X86FeatureADMSKEXTN: block 5, bit 30
    Feature(203, "syscall", "SYSCALL"),  # X86FeatureSYSCALL: block 6, bit 11
    Feature(212, "nx", "NX"),  # X86FeatureNX: block 6, bit 20
    Feature(214, "mmxext", "MMXEXT"),  # X86FeatureMMXEXT: block 6, bit 22
    Feature(217, "fxsr_opt", "FXSR_OPT"),  # X86FeatureFXSR_OPT: block 6, bit 25
    Feature(218, "pdpe1gb", "GBPAGES"),  # X86FeatureGBPAGES: block 6, bit 26
    Feature(219, "rdtscp", "RDTSCP"),  # X86FeatureRDTSCP: block 6, bit 27
    Feature(221, "lm", "LM"),  # X86FeatureLM: block 6, bit 29
    Feature(222, "3dnowext", "3DNOWEXT"),  # X86Feature3DNOWEXT: block 6, bit 30
    Feature(223, "3dnow", "3DNOW"),  # X86Feature3DNOW: block 6, bit 31
    Feature(226, "avx512_4vnniw", "AVX512_4VNNIW"),  # X86FeatureAVX512_4VNNIW: block 7, bit 2
    Feature(227, "avx512_4fmaps", "AVX512_4FMAPS"),  # X86FeatureAVX512_4FMAPS: block 7, bit 3
    Feature(228, "fsrm", "FSRM"),  # X86FeatureFSRM: block 7, bit 4
    Feature(
        232, "avx512_vp2intersect", "AVX512_VP2INTERSECT"
    ),  # X86FeatureAVX512_VP2INTERSECT: block 7, bit 8
    Feature(233, "srbds_ctrl", "SRBDS_CTRL", in_proc_cpuinfo=False),  # X86FeatureSRBDS_CTRL: block 7, bit 9
    Feature(234, "md_clear", "MD_CLEAR"),  # X86FeatureMD_CLEAR: block 7, bit 10
    Feature(
        235, "rtm_always_abort", "RTM_ALWAYS_ABORT", in_proc_cpuinfo=False
    ),  # X86FeatureRTM_ALWAYS_ABORT: block 7, bit 11
    Feature(
        237, "tsx_force_abort", "TSX_FORCE_ABORT", in_proc_cpuinfo=False
    ),  # X86FeatureTSX_FORCE_ABORT: block 7, bit 13
    Feature(238, "serialize", "SERIALIZE"),  # X86FeatureSERIALIZE: block 7, bit 14
    Feature(
        239, "hybrid_cpu", "HYBRID_CPU", in_proc_cpuinfo=False
    ),  # X86FeatureHYBRID_CPU: block 7, bit 15
    Feature(240, "tsxldtrk", "TSXLDTRK"),  # X86FeatureTSXLDTRK: block 7, bit 16
    Feature(242, "pconfig", "PCONFIG"),  # X86FeaturePCONFIG: block 7, bit 18
    Feature(243, "arch_lbr", "ARCH_LBR"),  # X86FeatureARCH_LBR: block 7, bit 19
    Feature(244, "ibt", "IBT"),  # X86FeatureIBT: block 7, bit 20
    Feature(246, "amx_bf16", "AMX_BF16"),  # X86FeatureAMX_BF16: block 7, bit 22
    Feature(247, "avx512_fp16", "AVX512_FP16"),  # X86FeatureAVX512_FP16: block 7, bit 23
    Feature(248, "amx_tile", "AMX_TILE"),  # X86FeatureAMX_TILE: block 7, bit 24
    Feature(249, "amx_int8", "AMX_INT8"),  # X86FeatureAMX_INT8: block 7, bit 25
    Feature(250, "spec_ctrl", "SPEC_CTRL", in_proc_cpuinfo=False),  # X86FeatureSPEC_CTRL: block 7, bit 26
    Feature(
        251, "intel_stibp", "INTEL_STIBP", in_proc_cpuinfo=False
    ),  # X86FeatureINTEL_STIBP: block 7, bit 27
    Feature(252, "flush_l1d", "FLUSH_L1D"),  # X86FeatureFLUSH_L1D: block 7, bit 28
    Feature(253, "arch_capabilities", "ARCH_CAPABILITIES"),  # X86FeatureARCH_CAPABILITIES: block 7, bit 29
    Feature(
        254, "core_capabilities", "CORE_CAPABILITIES", in_proc_cpuinfo=False
    ),  # X86FeatureCORE_CAPABILITIES: block 7, bit 30
    Feature(
        255, "spec_ctrl_ssbd", "SPEC_CTRL_SSBD", in_proc_cpuinfo=False
    ),  # X86FeatureSPEC_CTRL_SSBD: block 7, bit 31
    Feature(260, "avx_vnni", "AVX_VNNI", confirmed=False),  # X86FeatureAVX_VNNI: block 8, bit 4
    Feature(261, "avx512_bf16", "AVX512_BF16", confirmed=False),  # X86FeatureAVX512_BF16: block 8, bit 5
)
"""The features of amd64, by number."""

ARM64_FEATURES: tuple[Feature, ...] = (
    Feature(0, "fp", "FP"),  # ARM64FeatureFP
    Feature(1, "asimd", "ASIMD"),  # ARM64FeatureASIMD
    Feature(2, "evtstrm", "EVTSTRM"),  # ARM64FeatureEVTSTRM
    Feature(3, "aes", "AES"),  # ARM64FeatureAES
    Feature(4, "pmull", "PMULL"),  # ARM64FeaturePMULL
    Feature(5, "sha1", "SHA1"),  # ARM64FeatureSHA1
    Feature(6, "sha2", "SHA2"),  # ARM64FeatureSHA2
    Feature(7, "crc32", "CRC32"),  # ARM64FeatureCRC32
    Feature(8, "atomics", "ATOMICS"),  # ARM64FeatureATOMICS
    Feature(9, "fphp", "FPHP"),  # ARM64FeatureFPHP
    Feature(10, "asimdhp", "ASIMDHP"),  # ARM64FeatureASIMDHP
    Feature(11, "cpuid", "CPUID"),  # ARM64FeatureCPUID
    Feature(12, "asimdrdm", "ASIMDRDM"),  # ARM64FeatureASIMDRDM
    Feature(13, "jscvt", "JSCVT"),  # ARM64FeatureJSCVT
    Feature(14, "fcma", "FCMA"),  # ARM64FeatureFCMA
    Feature(15, "lrcpc", "LRCPC"),  # ARM64FeatureLRCPC
    Feature(16, "dcpop", "DCPOP"),  # ARM64FeatureDCPOP
    Feature(17, "sha3", "SHA3"),  # ARM64FeatureSHA3
    Feature(18, "sm3", "SM3"),  # ARM64FeatureSM3
    Feature(19, "sm4", "SM4"),  # ARM64FeatureSM4
    Feature(20, "asimddp", "ASIMDDP"),  # ARM64FeatureASIMDDP
    Feature(21, "sha512", "SHA512"),  # ARM64FeatureSHA512
    Feature(22, "sve", "SVE"),  # ARM64FeatureSVE
    Feature(23, "asimdfhm", "ASIMDFHM"),  # ARM64FeatureASIMDFHM
)
"""The features of arm64, by number: HWCAP bits 0 to 23 (Linux, `asm/hwcap.h`)."""
