/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - the MPI ABI 2.9 of MPItrampoline, as jaxlib 0.10 has it inside: 260 constants and
 * 374 functions, all looked up when the library is loaded. One that is missing ends the process,
 * so names.c makes something of each name in these lists.
 *
 * Constants are variables of ours, so their values are ours to choose: they are different where
 * MPI wants them to be, and mean nothing else. test/symbols compares the lists with a jaxlib.
 */
#ifndef HK_COMPAT_MPI_NAMES_H
#define HK_COMPAT_MPI_NAMES_H

#define HK__MPI_ABI_MAJOR 2
#define HK__MPI_ABI_MINOR 9

/* ---- constants ---- */

/* Of type int. */
#define HK__MPI_INTS(X) \
	X(ANY_SOURCE, -1) X(ANY_TAG, -2) X(PROC_NULL, -3) X(ROOT, -4) X(UNDEFINED, -5) \
	X(KEYVAL_INVALID, -6) X(CART, 1) X(DIST_GRAPH, 2) X(GRAPH, 3) X(IDENT, 1) \
	X(CONGRUENT, 2) X(SIMILAR, 3) X(UNEQUAL, 4) X(BSEND_OVERHEAD, 512) \
	X(COMM_TYPE_SHARED, 1) X(APPNUM, 1) X(HOST, 2) X(IO, 3) X(LASTUSEDCODE, 4) \
	X(TAG_UB, 5) X(UNIVERSE_SIZE, 6) X(WIN_BASE, 7) X(WIN_CREATE_FLAVOR, 8) \
	X(WIN_DISP_UNIT, 9) X(WIN_MODEL, 10) X(WIN_SIZE, 11) X(WTIME_IS_GLOBAL, 12) \
	X(COMBINER_CONTIGUOUS, 1) X(COMBINER_DARRAY, 2) X(COMBINER_DUP, 3) \
	X(COMBINER_F90_COMPLEX, 4) X(COMBINER_F90_INTEGER, 5) X(COMBINER_F90_REAL, 6) \
	X(COMBINER_HINDEXED, 7) X(COMBINER_HINDEXED_BLOCK, 8) X(COMBINER_HVECTOR, 9) \
	X(COMBINER_INDEXED, 10) X(COMBINER_INDEXED_BLOCK, 11) X(COMBINER_NAMED, 12) \
	X(COMBINER_RESIZED, 13) X(COMBINER_STRUCT, 14) X(COMBINER_SUBARRAY, 15) \
	X(COMBINER_VECTOR, 16) X(DISTRIBUTE_BLOCK, 1) X(DISTRIBUTE_CYCLIC, 2) \
	X(DISTRIBUTE_NONE, 3) X(DISTRIBUTE_DFLT_DARG, -1) X(SUCCESS, 0) X(ERR_ACCESS, 1) \
	X(ERR_AMODE, 2) X(ERR_ARG, 3) X(ERR_ASSERT, 4) X(ERR_BAD_FILE, 5) X(ERR_BASE, 6) \
	X(ERR_BUFFER, 7) X(ERR_COMM, 8) X(ERR_CONVERSION, 9) X(ERR_COUNT, 10) X(ERR_DIMS, 11) \
	X(ERR_DISP, 12) X(ERR_DUP_DATAREP, 13) X(ERR_FILE, 14) X(ERR_FILE_EXISTS, 15) \
	X(ERR_FILE_IN_USE, 16) X(ERR_GROUP, 17) X(ERR_INFO, 18) X(ERR_INFO_KEY, 19) \
	X(ERR_INFO_NOKEY, 20) X(ERR_INFO_VALUE, 21) X(ERR_INTERN, 22) X(ERR_IN_STATUS, 23) \
	X(ERR_IO, 24) X(ERR_KEYVAL, 25) X(ERR_LOCKTYPE, 26) X(ERR_NAME, 27) \
	X(ERR_NOT_SAME, 28) X(ERR_NO_MEM, 29) X(ERR_NO_SPACE, 30) X(ERR_NO_SUCH_FILE, 31) \
	X(ERR_OP, 32) X(ERR_OTHER, 33) X(ERR_PENDING, 34) X(ERR_PORT, 35) X(ERR_QUOTA, 36) \
	X(ERR_RANK, 37) X(ERR_READ_ONLY, 38) X(ERR_REQUEST, 39) X(ERR_RMA_ATTACH, 40) \
	X(ERR_RMA_CONFLICT, 41) X(ERR_RMA_FLAVOR, 42) X(ERR_RMA_RANGE, 43) \
	X(ERR_RMA_SHARED, 44) X(ERR_RMA_SYNC, 45) X(ERR_ROOT, 46) X(ERR_SERVICE, 47) \
	X(ERR_SIZE, 48) X(ERR_SPAWN, 49) X(ERR_TAG, 50) X(ERR_TOPOLOGY, 51) \
	X(ERR_TRUNCATE, 52) X(ERR_TYPE, 53) X(ERR_UNKNOWN, 54) X(ERR_UNSUPPORTED_DATAREP, 55) \
	X(ERR_UNSUPPORTED_OPERATION, 56) X(ERR_WIN, 57) X(ERR_LASTCODE, 0x3fffffff) \
	X(LOCK_EXCLUSIVE, 1) X(LOCK_SHARED, 2) X(MODE_APPEND, 1) X(MODE_CREATE, 2) \
	X(MODE_DELETE_ON_CLOSE, 4) X(MODE_EXCL, 8) X(MODE_NOCHECK, 16) X(MODE_NOPRECEDE, 32) \
	X(MODE_NOPUT, 64) X(MODE_NOSTORE, 128) X(MODE_NOSUCCEED, 256) X(MODE_RDONLY, 512) \
	X(MODE_RDWR, 1024) X(MODE_SEQUENTIAL, 2048) X(MODE_UNIQUE_OPEN, 4096) \
	X(MODE_WRONLY, 8192) X(ORDER_C, 1) X(ORDER_FORTRAN, 2) X(SEEK_CUR, 3) X(SEEK_END, 4) \
	X(SEEK_SET, 5) X(THREAD_SINGLE, 0) X(THREAD_FUNNELED, 1) X(THREAD_SERIALIZED, 2) \
	X(THREAD_MULTIPLE, 3) X(TYPECLASS_COMPLEX, 1) X(TYPECLASS_INTEGER, 2) \
	X(TYPECLASS_REAL, 3) X(WIN_FLAVOR_ALLOCATE, 1) X(WIN_FLAVOR_CREATE, 2) \
	X(WIN_FLAVOR_DYNAMIC, 3) X(WIN_FLAVOR_SHARED, 4) X(WIN_SEPARATE, 5) X(WIN_UNIFIED, 6)

/* Handles. Those of communicators count up from MPI_COMM_WORLD. */
#define HK__MPI_HANDLES(X) \
	X(COMM_NULL, 0) X(COMM_WORLD, 0x10) X(COMM_SELF, 8) X(DATATYPE_NULL, 0) \
	X(BYTE, 0x100) X(PACKED, 0x101) X(CHAR, 0x102) X(SIGNED_CHAR, 0x103) \
	X(UNSIGNED_CHAR, 0x104) X(SHORT, 0x105) X(UNSIGNED_SHORT, 0x106) X(INT, 0x107) \
	X(UNSIGNED, 0x108) X(LONG, 0x109) X(UNSIGNED_LONG, 0x10a) X(LONG_LONG, 0x10b) \
	X(LONG_LONG_INT, 0x10c) X(UNSIGNED_LONG_LONG, 0x10d) X(FLOAT, 0x10e) X(DOUBLE, 0x10f) \
	X(LONG_DOUBLE, 0x110) X(WCHAR, 0x111) X(C_BOOL, 0x112) X(INT8_T, 0x113) \
	X(INT16_T, 0x114) X(INT32_T, 0x115) X(INT64_T, 0x116) X(UINT8_T, 0x117) \
	X(UINT16_T, 0x118) X(UINT32_T, 0x119) X(UINT64_T, 0x11a) X(AINT, 0x11b) \
	X(COUNT, 0x11c) X(OFFSET, 0x11d) X(C_COMPLEX, 0x11e) X(C_FLOAT_COMPLEX, 0x11f) \
	X(C_DOUBLE_COMPLEX, 0x120) X(C_LONG_DOUBLE_COMPLEX, 0x121) X(CXX_BOOL, 0x122) \
	X(CXX_FLOAT_COMPLEX, 0x123) X(CXX_DOUBLE_COMPLEX, 0x124) \
	X(CXX_LONG_DOUBLE_COMPLEX, 0x125) X(INTEGER, 0x126) X(REAL, 0x127) \
	X(DOUBLE_PRECISION, 0x128) X(COMPLEX, 0x129) X(DOUBLE_COMPLEX, 0x12a) \
	X(LOGICAL, 0x12b) X(CHARACTER, 0x12c) X(INTEGER1, 0x12d) X(INTEGER2, 0x12e) \
	X(INTEGER4, 0x12f) X(INTEGER8, 0x130) X(REAL4, 0x131) X(REAL8, 0x132) \
	X(REAL16, 0x133) X(COMPLEX8, 0x134) X(COMPLEX16, 0x135) X(COMPLEX32, 0x136) \
	X(FLOAT_INT, 0x137) X(DOUBLE_INT, 0x138) X(LONG_INT, 0x139) X(SHORT_INT, 0x13a) \
	X(2INT, 0x13b) X(LONG_DOUBLE_INT, 0x13c) X(2REAL, 0x13d) X(2DOUBLE_PRECISION, 0x13e) \
	X(2INTEGER, 0x13f) X(OP_NULL, 0) X(SUM, 0x200) X(PROD, 0x201) X(MIN, 0x202) \
	X(MAX, 0x203) X(BAND, 0x204) X(BOR, 0x205) X(BXOR, 0x206) X(LAND, 0x207) \
	X(LOR, 0x208) X(LXOR, 0x209) X(MAXLOC, 0x20a) X(MINLOC, 0x20b) X(REPLACE, 0x20c) \
	X(NO_OP, 0x20d) X(ERRHANDLER_NULL, 0) X(ERRORS_ARE_FATAL, 0x301) \
	X(ERRORS_RETURN, 0x302) X(FILE_NULL, 0) X(GROUP_NULL, 0) X(GROUP_EMPTY, 0x401) \
	X(INFO_NULL, 0) X(INFO_ENV, 0x501) X(MESSAGE_NULL, 0) X(MESSAGE_NO_PROC, 0x601) \
	X(REQUEST_NULL, 0) X(WIN_NULL, 0)

/* Addresses that stand for something, functions that are never called, and an MPI_Offset. */
#define HK__MPI_POINTERS(X) \
	X(BOTTOM, 0) X(IN_PLACE, 1) X(STATUS_IGNORE, 1) X(STATUSES_IGNORE, 1) \
	X(F_STATUS_IGNORE, 1) X(F_STATUSES_IGNORE, 1) X(ARGV_NULL, 0) X(ARGVS_NULL, 0) \
	X(ERRCODES_IGNORE, 0) X(UNWEIGHTED, 1) X(WEIGHTS_EMPTY, 2) \
	X(DISPLACEMENT_CURRENT, -1) X(COMM_NULL_COPY_FN, 0) X(COMM_NULL_DELETE_FN, 0) \
	X(NULL_COPY_FN, 0) X(NULL_DELETE_FN, 0) X(TYPE_NULL_COPY_FN, 0) \
	X(TYPE_NULL_DELETE_FN, 0) X(WIN_NULL_COPY_FN, 0) X(WIN_NULL_DELETE_FN, 0) \
	X(CONVERSION_FN_NULL, 0) X(COMM_DUP_FN, 1) X(DUP_FN, 1) X(TYPE_DUP_FN, 1) \
	X(WIN_DUP_FN, 1)

/* ---- functions ---- */

/* XLA calls the first sixteen; MPItrampoline itself the last, if it is to be verbose. */
#define HK__MPI_SERVED(X) \
	X(Init_thread) X(Is_thread_main) X(Comm_rank) X(Comm_size) X(Comm_split) X(Comm_free) \
	X(Allreduce) X(Allgather) X(Alltoall) X(Reduce_scatter) X(Isend) X(Irecv) X(Wait) \
	X(Sendrecv) X(Error_string) X(Finalize) X(Get_library_version)

/* Those that say whether an accelerator is supported, whose names begin with MPIX. */
#define HK__MPIX_QUERIES(X) \
	X(Query_cuda_support) X(Query_hip_support) X(Query_ze_support)

/* Those that cannot return an error. */
#define HK__MPI_ABORTED(X) \
	X(Aint_add) X(Aint_diff) X(Comm_c2f) X(Comm_f2c) X(Errhandler_c2f) X(Errhandler_f2c) \
	X(File_c2f) X(File_f2c) X(Group_c2f) X(Group_f2c) X(Info_c2f) X(Info_f2c) \
	X(Message_c2f) X(Message_f2c) X(Op_c2f) X(Op_f2c) X(Request_c2f) X(Request_f2c) \
	X(Type_c2f) X(Type_f2c) X(Win_c2f) X(Win_f2c) X(Wtick) X(Wtime)

#define HK__MPI_REFUSED(X) \
	X(Abort) X(Accumulate) X(Add_error_class) X(Add_error_code) X(Add_error_string) \
	X(Allgatherv) X(Alloc_mem) X(Alltoallv) X(Alltoallw) X(Barrier) X(Bcast) X(Bsend) \
	X(Bsend_init) X(Buffer_attach) X(Buffer_detach) X(Cancel) X(Cart_coords) \
	X(Cart_create) X(Cart_get) X(Cart_map) X(Cart_rank) X(Cart_shift) X(Cart_sub) \
	X(Cartdim_get) X(Close_port) X(Comm_accept) X(Comm_call_errhandler) X(Comm_compare) \
	X(Comm_connect) X(Comm_create) X(Comm_create_errhandler) X(Comm_create_group) \
	X(Comm_create_keyval) X(Comm_delete_attr) X(Comm_disconnect) X(Comm_dup) \
	X(Comm_dup_with_info) X(Comm_free_keyval) X(Comm_get_attr) X(Comm_get_errhandler) \
	X(Comm_get_info) X(Comm_get_name) X(Comm_get_parent) X(Comm_group) X(Comm_idup) \
	X(Comm_join) X(Comm_remote_group) X(Comm_remote_size) X(Comm_set_attr) \
	X(Comm_set_errhandler) X(Comm_set_info) X(Comm_set_name) X(Comm_spawn) \
	X(Comm_spawn_multiple) X(Comm_split_type) X(Comm_test_inter) X(Compare_and_swap) \
	X(Dims_create) X(Dist_graph_create) X(Dist_graph_create_adjacent) \
	X(Dist_graph_neighbors) X(Dist_graph_neighbors_count) X(Errhandler_free) \
	X(Error_class) X(Exscan) X(Fetch_and_op) X(File_call_errhandler) X(File_close) \
	X(File_create_errhandler) X(File_delete) X(File_get_amode) X(File_get_atomicity) \
	X(File_get_byte_offset) X(File_get_errhandler) X(File_get_group) X(File_get_info) \
	X(File_get_position) X(File_get_position_shared) X(File_get_size) \
	X(File_get_type_extent) X(File_get_view) X(File_iread) X(File_iread_all) \
	X(File_iread_at) X(File_iread_at_all) X(File_iread_shared) X(File_iwrite) \
	X(File_iwrite_all) X(File_iwrite_at) X(File_iwrite_at_all) X(File_iwrite_shared) \
	X(File_open) X(File_preallocate) X(File_read) X(File_read_all) X(File_read_all_begin) \
	X(File_read_all_end) X(File_read_at) X(File_read_at_all) X(File_read_at_all_begin) \
	X(File_read_at_all_end) X(File_read_ordered) X(File_read_ordered_begin) \
	X(File_read_ordered_end) X(File_read_shared) X(File_seek) X(File_seek_shared) \
	X(File_set_atomicity) X(File_set_errhandler) X(File_set_info) X(File_set_size) \
	X(File_set_view) X(File_sync) X(File_write) X(File_write_all) X(File_write_all_begin) \
	X(File_write_all_end) X(File_write_at) X(File_write_at_all) \
	X(File_write_at_all_begin) X(File_write_at_all_end) X(File_write_ordered) \
	X(File_write_ordered_begin) X(File_write_ordered_end) X(File_write_shared) \
	X(Finalized) X(Free_mem) X(Gather) X(Gatherv) X(Get) X(Get_accumulate) X(Get_address) \
	X(Get_count) X(Get_elements) X(Get_elements_x) X(Get_processor_name) X(Get_version) \
	X(Graph_create) X(Graph_get) X(Graph_map) X(Graph_neighbors) X(Graph_neighbors_count) \
	X(Graphdims_get) X(Grequest_complete) X(Grequest_start) X(Group_compare) \
	X(Group_difference) X(Group_excl) X(Group_free) X(Group_incl) X(Group_intersection) \
	X(Group_range_excl) X(Group_range_incl) X(Group_rank) X(Group_size) \
	X(Group_translate_ranks) X(Group_union) X(Iallgather) X(Iallgatherv) X(Iallreduce) \
	X(Ialltoall) X(Ialltoallv) X(Ialltoallw) X(Ibarrier) X(Ibcast) X(Ibsend) X(Iexscan) \
	X(Igather) X(Igatherv) X(Improbe) X(Imrecv) X(Ineighbor_allgather) \
	X(Ineighbor_allgatherv) X(Ineighbor_alltoall) X(Ineighbor_alltoallv) \
	X(Ineighbor_alltoallw) X(Info_create) X(Info_delete) X(Info_dup) X(Info_free) \
	X(Info_get) X(Info_get_nkeys) X(Info_get_nthkey) X(Info_get_valuelen) X(Info_set) \
	X(Init) X(Initialized) X(Intercomm_create) X(Intercomm_merge) X(Iprobe) X(Ireduce) \
	X(Ireduce_scatter) X(Ireduce_scatter_block) X(Irsend) X(Iscan) X(Iscatter) \
	X(Iscatterv) X(Issend) X(Lookup_name) X(Mprobe) X(Mrecv) X(Neighbor_allgather) \
	X(Neighbor_allgatherv) X(Neighbor_alltoall) X(Neighbor_alltoallv) \
	X(Neighbor_alltoallw) X(Op_commutative) X(Op_create) X(Op_free) X(Open_port) X(Pack) \
	X(Pack_external) X(Pack_external_size) X(Pack_size) X(Probe) X(Publish_name) X(Put) \
	X(Query_thread) X(Raccumulate) X(Recv) X(Recv_init) X(Reduce) X(Reduce_local) \
	X(Reduce_scatter_block) X(Register_datarep) X(Request_free) X(Request_get_status) \
	X(Rget) X(Rget_accumulate) X(Rput) X(Rsend) X(Rsend_init) X(Scan) X(Scatter) \
	X(Scatterv) X(Send) X(Send_init) X(Sendrecv_replace) X(Ssend) X(Ssend_init) X(Start) \
	X(Startall) X(Status_c2f) X(Status_f2c) X(Status_set_cancelled) \
	X(Status_set_elements) X(Status_set_elements_x) X(Test) X(Test_cancelled) X(Testall) \
	X(Testany) X(Testsome) X(Topo_test) X(Type_commit) X(Type_contiguous) \
	X(Type_create_darray) X(Type_create_f90_complex) X(Type_create_f90_integer) \
	X(Type_create_f90_real) X(Type_create_hindexed) X(Type_create_hindexed_block) \
	X(Type_create_hvector) X(Type_create_indexed_block) X(Type_create_keyval) \
	X(Type_create_resized) X(Type_create_struct) X(Type_create_subarray) \
	X(Type_delete_attr) X(Type_dup) X(Type_free) X(Type_free_keyval) X(Type_get_attr) \
	X(Type_get_contents) X(Type_get_envelope) X(Type_get_extent) X(Type_get_extent_x) \
	X(Type_get_name) X(Type_get_true_extent) X(Type_get_true_extent_x) X(Type_indexed) \
	X(Type_match_size) X(Type_set_attr) X(Type_set_name) X(Type_size) X(Type_size_x) \
	X(Type_struct) X(Type_vector) X(Unpack) X(Unpack_external) X(Unpublish_name) \
	X(Waitall) X(Waitany) X(Waitsome) X(Win_allocate) X(Win_allocate_shared) \
	X(Win_attach) X(Win_call_errhandler) X(Win_complete) X(Win_create) \
	X(Win_create_dynamic) X(Win_create_errhandler) X(Win_create_keyval) \
	X(Win_delete_attr) X(Win_detach) X(Win_fence) X(Win_flush) X(Win_flush_all) \
	X(Win_flush_local) X(Win_flush_local_all) X(Win_free) X(Win_free_keyval) \
	X(Win_get_attr) X(Win_get_errhandler) X(Win_get_group) X(Win_get_info) \
	X(Win_get_name) X(Win_lock) X(Win_lock_all) X(Win_post) X(Win_set_attr) \
	X(Win_set_errhandler) X(Win_set_info) X(Win_set_name) X(Win_shared_query) \
	X(Win_start) X(Win_sync) X(Win_test) X(Win_unlock) X(Win_unlock_all) X(Win_wait)

#endif
