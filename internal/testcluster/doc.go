// Package testcluster runs clusters that tests do harm to. A Cluster takes the
// same orders whatever runs under it:
//
//   - sim: real nodes, servers and clients in one process over a network in
//     memory, for a testing/synctest bubble, where minutes take milliseconds;
//   - proc: one process per node over loopback TCP, each pair of nodes through a
//     proxy of its own, stopped and killed by signals.
//
// # What a fault is in each
//
//	order       sim                                    proc
//	kill        links cut, then closed in a hurry      SIGKILL
//	pause       every byte to and from it waits        SIGSTOP
//	cut, slow   internal/memnet                        the proxies
//	drop        links stand still for 50 ms, at random the same
//	disk-full   appends fail with ENOSPC, in a seam    the same
//	disk-stall  appends hang, in a seam                the same
//	clock-jump  the wall clock is offset, in a seam    the same
//	power-loss  not there: it needs a file system      copy of the image of an
//	                                                   ext4 on a loop device; root
//
// # The archive
//
// Beside the nodes runs a member that does not vote, is never harmed and never
// compacts its log. What it holds at the end is the history that everything
// else is judged by.
package testcluster
