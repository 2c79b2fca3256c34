// Package testscript runs scripts that do harm to a cluster and check what came
// of it. The language is rsc.io/script with the orders of internal/testcluster,
// the workloads and judges of internal/testhistory, and every verb of the stave
// program; testdata/README.md describes it.
package testscript
