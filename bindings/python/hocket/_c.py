# SPDX-License-Identifier: Apache-2.0
"""The C interface, as ctypes declares it.

Nothing here decides anything: structs, enumerations and functions are those of
include/hocket/*.h, in the order of the headers. test/test_layout.py compiles a C program
that compares sizes, offsets and values with the headers, so the two cannot drift apart.
"""

from __future__ import annotations

import ctypes
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_int,
                    c_size_t, c_uint32, c_uint64, c_void_p)
from typing import Any, Dict, Tuple

from . import _library

lib = _library.load()
libc = ctypes.CDLL(None)

HK_NONE = 0xFFFFFFFF
HK_WHY_MAX = 768
HK_CHECK_TEXT_MAX = 256
HK_SIM_CANDIDATES_MAX = 32

# ---- enumerations: the names behind HK_, HK_TYPE_, ... and their values ----

STATUS = {"OK": 0, "INPROGRESS": 1, "EINVAL": -1, "ENOMEM": -2, "ESYNTAX": -4, "ELIMIT": -5,
          "EIO": -6, "EREFUSED": -7, "ETIMEDOUT": -8, "EPEER": -9, "EMISMATCH": -10,
          "EDENIED": -11, "EREVOKED": -12}


def _count(names: str) -> Dict[str, int]:
    return {name: i for i, name in enumerate(names.split())}


TYPE = _count("INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 FP16 BF16 FP8E4M3 FP8E5M2 "
              "FP32 FP64")
REDOP = _count("SUM PROD MIN MAX AVG BAND BOR BXOR PREMULSUM")
COLL = _count("ALLREDUCE ALLGATHER REDUCESCATTER ALLTOALL BROADCAST REDUCE GATHER SCATTER "
              "BARRIER SENDRECV")
BUF = _count("NONE IN OUT SCRATCH")
OP = _count("NOP SEND RECV RECV_REDUCE RECV_SEND RECV_REDUCE_SEND COPY REDUCE PUT SIGNAL WAIT "
            "MULTICAST SWITCH_REDUCE")
REFUSAL = _count("NONE FORM PROGRESS RACE RESULT")
SIM_FAULT = _count("SLOW_RANK LATE_RANK SLOW_LINK LOSSY_LINK DEAD_LINK")
LOG = _count("ERROR WARN INFO DEBUG")

OK = STATUS["OK"]
INPROGRESS = STATUS["INPROGRESS"]

# ---- structs ----


class Why(Structure):
    """struct hk_why"""
    _fields_ = [("text", c_char * HK_WHY_MAX)]

    def line(self) -> str:
        return self.text.decode(errors="replace")


class Sized(Structure):
    """A struct whose first member is its own size."""

    def __init__(self, **values: Any) -> None:
        super().__init__(size=ctypes.sizeof(type(self)), **values)


class EnvInfo(Sized):
    """struct hk_env_info"""
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("type", c_char_p),
                ("usual", c_char_p), ("about", c_char_p), ("readers", c_char_p),
                ("text", c_char_p), ("number", c_uint64), ("secret", c_bool),
                ("takes", c_char * 96)]


class GroupOpts(Sized):
    """struct hk_group_opts"""
    _fields_ = [("size", c_size_t), ("address", c_char_p), ("rank", c_uint32),
                ("nranks", c_uint32), ("key", c_char_p), ("host", c_char_p),
                ("iface", c_char_p), ("net", c_char_p), ("timeout_ns", c_uint64),
                ("check", c_bool), ("progress", c_bool), ("alloc", c_void_p),
                ("fabric", c_char_p), ("watch_ns", c_uint64), ("silence_ns", c_uint64),
                ("encrypt", c_bool), ("gpu", c_char_p)]


class Opts(Sized):
    """struct hk_opts"""
    _fields_ = [("size", c_size_t), ("algo", c_char_p), ("plan", c_void_p),
                ("timeout_ns", c_uint64), ("tag", c_uint32), ("factor", c_void_p),
                ("request", c_void_p), ("stream", c_void_p)]


OPENED = CFUNCTYPE(None, c_void_p, c_char_p)


class GrowOpts(Sized):
    """struct hk_grow_opts"""
    _fields_ = [("size", c_size_t), ("address", c_char_p), ("timeout_ns", c_uint64),
                ("opened", OPENED), ("ctx", c_void_p)]


class Choice(Sized):
    """struct hk_choice"""
    _fields_ = [("size", c_size_t), ("algo", c_char_p), ("net", c_char_p)]


class Port(Structure):
    """struct hk_port"""
    _fields_ = [("rank", c_uint32), ("lane", c_uint32)]


class Span(Structure):
    """struct hk_span"""
    _fields_ = [("buf", c_int), ("first", c_uint32), ("run", c_uint32),
                ("period", c_uint32)]


class After(Structure):
    """struct hk_after"""
    _fields_ = [("lane", c_uint32), ("step", c_uint32)]


class Step(Structure):
    """struct hk_step"""
    _fields_ = [("op", c_int), ("count", c_uint32), ("from_", Port), ("to", Port),
                ("src", Span), ("dst", Span), ("after", After)]


class Msg(Structure):
    """struct hk_msg"""
    _fields_ = [("src", c_uint32), ("dst", c_uint32)]


class PlanOpts(Sized):
    """struct hk_plan_opts"""
    _fields_ = [("size", c_size_t), ("algo", c_char_p), ("root", c_uint32),
                ("nodes", c_uint32), ("msgs", POINTER(Msg)), ("nmsgs", c_size_t),
                ("alloc", c_void_p), ("node_sizes", POINTER(c_uint32))]


class PlanInfo(Sized):
    """struct hk_plan_info"""
    _fields_ = [("size", c_size_t), ("coll", c_int), ("algo", c_char_p),
                ("nranks", c_uint32), ("root", c_uint32), ("nodes", c_uint32),
                ("parts", c_uint32), ("slots", c_uint32), ("inplace", c_bool),
                ("msgs", POINTER(Msg)), ("nmsgs", c_size_t),
                ("node_sizes", POINTER(c_uint32)), ("signals", c_int)]


class AlgoInfo(Sized):
    """struct hk_algo_info"""
    _fields_ = [("size", c_size_t), ("coll", c_int), ("name", c_char_p),
                ("alias", c_char_p), ("about", c_char_p), ("steps", c_char_p),
                ("sent", c_char_p), ("reduced", c_char_p), ("scratch", c_char_p),
                ("limits", c_char_p), ("nodes", c_bool), ("rooted", c_bool),
                ("inplace", c_bool), ("uneven", c_bool), ("onesided", c_bool)]


class PrintOpts(Sized):
    """struct hk_print_opts"""
    _fields_ = [("size", c_size_t), ("one_rank", c_bool), ("rank", c_uint32)]


CHECK_PROGRESS = CFUNCTYPE(None, c_void_p, c_uint64, c_uint64)


class CheckOpts(Sized):
    """struct hk_check_opts"""
    _fields_ = [("size", c_size_t), ("inplace", c_bool), ("set_slots", c_bool),
                ("slots", c_uint32), ("alloc", c_void_p),
                ("progress", CHECK_PROGRESS), ("ctx", c_void_p)]


class CheckCost(Structure):
    """struct hk_check_cost"""
    _fields_ = [("steps_total", c_uint64), ("messages", c_uint64),
                ("critical", c_uint32), ("chunks", c_uint32),
                ("busiest_sent", c_uint64), ("busiest_received", c_uint64),
                ("busiest_reduced", c_uint64), ("busiest_copied", c_uint64),
                ("sent", c_uint64), ("scratch_max", c_uint32),
                ("scratch_used", c_uint32), ("lanes_max", c_uint32)]


class CheckReport(Sized):
    """struct hk_check_report"""
    _fields_ = [("size", c_size_t), ("proved", c_bool), ("refusal", c_int),
                ("invariant", c_uint32), ("rank", c_uint32), ("lane", c_uint32),
                ("step", c_uint32), ("expected", c_char * HK_CHECK_TEXT_MAX),
                ("found", c_char * HK_CHECK_TEXT_MAX), ("why", Why),
                ("consistent", c_bool), ("cost", CheckCost)]


class FabricInfo(Sized):
    """struct hk_fabric_info"""
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("about", c_char_p),
                ("ranks", c_uint32), ("nodes", c_uint32), ("node_ranks", c_uint32),
                ("links", c_uint64)]


class FabricConstant(Sized):
    """struct hk_fabric_constant"""
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("value", c_double),
                ("unit", c_char_p), ("source", c_char_p)]


class FabricName(Sized):
    """struct hk_fabric_name"""
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("scale", c_char_p),
                ("options", c_char_p), ("about", c_char_p)]


class SimJob(Structure):
    """struct hk_sim_job"""
    _fields_ = [("plan", c_void_p), ("bytes", c_double),
                ("devices", POINTER(c_uint32)), ("start_ns", c_double)]


class SimFault(Structure):
    """struct hk_sim_fault"""
    _fields_ = [("kind", c_int), ("link", c_char_p), ("rank", c_uint32),
                ("factor", c_double), ("ns", c_double)]


class SimEvent(Structure):
    """struct hk_sim_event"""
    _fields_ = [("job", c_uint32), ("rank", c_uint32), ("lane", c_uint32),
                ("step", c_uint32), ("slice", c_uint32), ("op", c_int),
                ("from_", c_uint32), ("to", c_uint32), ("bytes", c_double),
                ("start_ns", c_double), ("end_ns", c_double), ("message", c_bool)]


SIM_EVENT = CFUNCTYPE(None, c_void_p, POINTER(SimEvent))
SIM_PROGRESS = CFUNCTYPE(None, c_void_p, c_double)


class SimOpts(Sized):
    """struct hk_sim_opts"""
    _fields_ = [("size", c_size_t), ("alloc", c_void_p), ("full", c_bool),
                ("seed", c_uint64), ("samples", c_uint32), ("jitter", c_double),
                ("faults", POINTER(SimFault)), ("nfaults", c_uint32),
                ("event", SIM_EVENT), ("ctx", c_void_p), ("slice_bytes", c_double),
                ("progress", SIM_PROGRESS), ("calls", c_uint32),
                ("messages_max", c_uint64)]


class SimResult(Sized):
    """struct hk_sim_result"""
    _fields_ = [("size", c_size_t), ("time_ns", c_double), ("p95_ns", c_double),
                ("bound_ns", c_double), ("bound_bytes_ns", c_double),
                ("bound_delay_ns", c_double), ("algbw", c_double),
                ("busbw", c_double), ("bottleneck", c_char * 96), ("busy", c_double),
                ("messages", c_uint64), ("simulated", c_uint64),
                ("classes", c_uint32), ("folded", c_bool), ("smeared", c_bool)]


class SimChoice(Structure):
    """struct hk_sim_choice"""
    _fields_ = [("coll", c_int), ("ranks", c_uint32), ("root", c_uint32),
                ("bytes", c_double), ("all", c_bool)]


class SimCandidate(Sized):
    """struct hk_sim_candidate"""
    _fields_ = [("size", c_size_t), ("algo", c_char_p), ("estimate_ns", c_double),
                ("steps", c_double), ("sent", c_double), ("reduced", c_double),
                ("simulated", c_bool), ("result", SimResult)]


class SimNcclCall(Structure):
    """struct hk_sim_nccl_call"""
    _fields_ = [("coll", c_int), ("n", c_uint32), ("bytes", c_double),
                ("type", c_int)]


class SimNcclResult(Sized):
    """struct hk_sim_nccl_result"""
    _fields_ = [("size", c_size_t), ("time_ns", c_double), ("bound_ns", c_double),
                ("nccl_ns", c_double), ("algbw", c_double), ("busbw", c_double),
                ("algo", c_char_p), ("proto", c_char_p), ("channels", c_uint32),
                ("bottleneck", c_char_p)]


# The structs, by their names in C; a member `from_` is `from` there.
STRUCTS = {"hk_why": Why, "hk_env_info": EnvInfo, "hk_group_opts": GroupOpts, "hk_opts": Opts,
           "hk_grow_opts": GrowOpts, "hk_choice": Choice, "hk_port": Port, "hk_span": Span,
           "hk_after": After, "hk_step": Step, "hk_msg": Msg, "hk_plan_opts": PlanOpts,
           "hk_plan_info": PlanInfo, "hk_algo_info": AlgoInfo, "hk_print_opts": PrintOpts,
           "hk_check_opts": CheckOpts, "hk_check_cost": CheckCost,
           "hk_check_report": CheckReport, "hk_fabric_info": FabricInfo,
           "hk_fabric_constant": FabricConstant, "hk_fabric_name": FabricName,
           "hk_sim_job": SimJob, "hk_sim_fault": SimFault, "hk_sim_event": SimEvent,
           "hk_sim_opts": SimOpts, "hk_sim_result": SimResult, "hk_sim_choice": SimChoice,
           "hk_sim_candidate": SimCandidate, "hk_sim_nccl_call": SimNcclCall,
           "hk_sim_nccl_result": SimNcclResult}
ENUMS = {"HK_": STATUS, "HK_TYPE_": TYPE, "HK_REDOP_": REDOP, "HK_COLL_": COLL,
         "HK_BUF_": BUF, "HK_OP_": OP, "HK_REFUSAL_": REFUSAL, "HK_SIM_": SIM_FAULT,
         "HK_LOG_": LOG}
LIMITS = {"HK_NONE": HK_NONE, "HK_WHY_MAX": HK_WHY_MAX, "HK_CHECK_TEXT_MAX": HK_CHECK_TEXT_MAX,
          "HK_SIM_CANDIDATES_MAX": HK_SIM_CANDIDATES_MAX}

# ---- functions: what they return, and what they take ----

LOG_FN = CFUNCTYPE(None, c_void_p, c_int, c_char_p)

_handle = c_void_p            # of a group, request, plan or fabric
_out = c_void_p               # where a result goes: byref
_counts = c_void_p            # uint64_t[]
_file = c_void_p
_pure = (c_void_p, c_void_p, c_void_p, c_uint64, c_int)  # group, in, out, count, type

SIGNATURES: Dict[str, Tuple[Any, Tuple[Any, ...]]] = {
    "hk_version": (c_char_p, ()),
    "hk_status_name": (c_char_p, (c_int,)),
    "hk_status_text": (c_char_p, (c_int,)),
    "hk_type_name": (c_char_p, (c_int,)),
    "hk_type_size": (c_size_t, (c_int,)),
    "hk_type_parse": (c_int, (c_char_p, _out)),
    "hk_redop_name": (c_char_p, (c_int,)),
    "hk_redop_parse": (c_int, (c_char_p, _out)),
    "hk_redop_valid": (c_bool, (c_int, c_int)),
    "hk_coll_name": (c_char_p, (c_int,)),
    "hk_coll_parse": (c_int, (c_char_p, _out)),
    "hk_env_get": (c_bool, (c_uint32, _out)),
    "hk_env_find": (c_int, (c_char_p, _out)),
    "hk_env_check": (c_int, (c_char_p, c_char_p, _out)),
    "hk_log_set": (None, (LOG_FN, c_void_p)),

    "hk_group_create": (c_int, (_out, _out, _out)),
    "hk_group_threads": (c_int, (c_uint32, _out, _out, _out)),
    "hk_group_split": (c_int, (_handle, c_uint32, c_uint32, _out)),
    "hk_group_dup": (c_int, (_handle, _out)),
    "hk_group_free": (None, (_handle,)),
    "hk_group_rank": (c_uint32, (_handle,)),
    "hk_group_size": (c_uint32, (_handle,)),
    "hk_group_local_rank": (c_uint32, (_handle,)),
    "hk_group_local_size": (c_uint32, (_handle,)),
    "hk_group_hosts": (c_uint32, (_handle,)),
    "hk_group_host": (c_uint32, (_handle, c_uint32)),
    "hk_group_translate": (c_int, (_handle, c_void_p, c_uint32, _handle, c_void_p)),
    "hk_group_state": (c_int, (_handle,)),
    "hk_group_why": (c_char_p, (_handle,)),
    "hk_group_revoke": (c_int, (_handle,)),
    "hk_group_agree": (c_int, (_handle, _out, _out)),
    "hk_group_shrink": (c_int, (_handle, _out, _out)),
    "hk_group_lost": (c_uint32, (_handle, c_void_p, c_uint32)),
    "hk_group_grow": (c_int, (_handle, c_uint32, _out, _out)),
    "hk_group_choice": (c_int, (_handle, c_int, c_uint64, c_int, _out)),
    "hk_mem_alloc": (c_int, (_handle, c_size_t, _out)),
    "hk_mem_free": (None, (_handle, c_void_p)),

    "hk_allreduce": (c_int, _pure + (c_int, _out)),
    "hk_reduce": (c_int, _pure + (c_int, c_uint32, _out)),
    "hk_broadcast": (c_int, _pure + (c_uint32, _out)),
    "hk_allgather": (c_int, _pure + (_out,)),
    "hk_gather": (c_int, _pure + (c_uint32, _out)),
    "hk_reducescatter": (c_int, _pure + (c_int, _out)),
    "hk_scatter": (c_int, _pure + (c_uint32, _out)),
    "hk_alltoall": (c_int, _pure + (_out,)),
    "hk_barrier": (c_int, (_handle, _out)),
    "hk_allgatherv": (c_int, (_handle, c_void_p, c_void_p, _counts, c_int, _out)),
    "hk_gatherv": (c_int, (_handle, c_void_p, c_void_p, _counts, c_int, c_uint32, _out)),
    "hk_reducescatterv": (c_int, (_handle, c_void_p, c_void_p, _counts, c_int, c_int, _out)),
    "hk_scatterv": (c_int, (_handle, c_void_p, c_void_p, _counts, c_int, c_uint32, _out)),
    "hk_alltoallv": (c_int, (_handle, c_void_p, _counts, c_void_p, _counts, c_int, _out)),
    "hk_send": (c_int, (_handle, c_void_p, c_uint64, c_int, c_uint32, _out)),
    "hk_recv": (c_int, (_handle, c_void_p, c_uint64, c_int, c_uint32, _out)),
    "hk_batch_begin": (c_int, (_handle,)),
    "hk_batch_end": (c_int, (_handle,)),

    "hk_request_wait": (c_int, (_handle, c_uint64)),
    "hk_request_wait_any": (c_int, (c_void_p, c_uint32, c_uint64, _out)),
    "hk_request_wake": (None, (_handle,)),
    "hk_request_wait_all": (c_int, (c_void_p, c_uint32, c_uint64)),
    "hk_request_test": (c_int, (_handle,)),
    "hk_request_fd": (c_int, (_handle, _out)),
    "hk_request_free": (None, (_handle,)),

    "hk_plan_create": (c_int, (c_int, c_uint32, _out, _out, _out)),
    "hk_plan_free": (None, (_handle,)),
    "hk_plan_describe": (None, (_handle, _out)),
    "hk_plan_lanes": (c_uint32, (_handle, c_uint32)),
    "hk_plan_steps": (c_uint32, (_handle, c_uint32, c_uint32)),
    "hk_plan_step": (None, (_handle, c_uint32, c_uint32, c_uint32, _out)),
    "hk_plan_slots": (c_uint32, (_handle, c_uint32, c_int)),
    "hk_span_at": (c_uint32, (_out, c_uint32, c_uint32)),
    "hk_plan_print_table": (c_int, (_handle, _out, _file, _out)),
    "hk_plan_print_picture": (c_int, (_handle, _out, _file, _out)),
    "hk_plan_print_dot": (c_int, (_handle, _out, _file, _out)),
    "hk_plan_print_json": (c_int, (_handle, _out, _file, _out)),
    "hk_plan_print_msccl": (c_int, (_handle, _file, _out)),
    "hk_plan_parse": (c_int, (c_char_p, c_size_t, c_char_p, c_void_p, _out, _out)),
    "hk_plan_read": (c_int, (c_char_p, c_void_p, _out, _out)),
    "hk_algo_get": (c_bool, (c_uint32, _out)),
    "hk_algo_find": (c_int, (c_int, c_char_p, _out)),
    "hk_op_name": (c_char_p, (c_int,)),
    "hk_buf_name": (c_char_p, (c_int,)),
    "hk_check": (c_int, (_handle, _out, _out)),
    "hk_refusal_name": (c_char_p, (c_int,)),

    "hk_fabric_create": (c_int, (c_char_p, c_void_p, _out, _out)),
    "hk_fabric_parse": (c_int, (c_char_p, c_size_t, c_char_p, c_void_p, _out, _out)),
    "hk_fabric_free": (None, (_handle,)),
    "hk_fabric_describe": (None, (_handle, _out)),
    "hk_fabric_constant": (c_bool, (_handle, c_uint32, _out)),
    "hk_fabric_change": (c_int, (_handle, c_char_p, _out)),
    "hk_fabric_print": (c_int, (_handle, _file, _out)),
    "hk_fabric_print_file": (c_int, (_handle, _file, _out)),
    "hk_fabric_name_get": (c_bool, (c_uint32, _out)),

    "hk_sim_run": (c_int, (_handle, _out, c_uint32, _out, _out, _out)),
    "hk_sim_candidates": (c_int, (_handle, _out, _out, _out, _out, _out)),
    "hk_sim_nccl": (c_int, (_handle, _out, _out, _out)),
}

for _name, (_result, _takes) in SIGNATURES.items():
    try:
        _function = getattr(lib, _name)
    except AttributeError:
        raise ImportError(f"{_library.path()} has no {_name}: it is older than this package; "
                          "build or install it again") from None
    _function.restype = _result
    _function.argtypes = _takes

libc.open_memstream.restype = c_void_p
libc.open_memstream.argtypes = (c_void_p, c_void_p)
libc.fclose.restype = c_int
libc.fclose.argtypes = (c_void_p,)
libc.free.restype = None
libc.free.argtypes = (c_void_p,)


def text(value: Any) -> Any:
    """A char pointer as str; None stays None."""
    return None if value is None else value.decode(errors="replace")


def encode(value: Any, what: str) -> Any:
    """str or path as bytes; None stays None."""
    if value is None:
        return None
    if hasattr(value, "__fspath__"):
        value = value.__fspath__()
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        raise TypeError(f"{what} is a text, not {type(value).__name__}")
    if b"\0" in value:
        raise ValueError(f"{what} has a NUL byte")
    return value
