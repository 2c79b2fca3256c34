// Package testtorture does random harm to a cluster under all workloads at once,
// two kinds of fault at a time, and lets the judges of internal/testhistory look
// at what came of it. A seed fixes the workloads, the faults and their times, not
// the interleaving; the log and the history of a failing run are kept.
package testtorture
