// Package memnet is a network in memory, for tests that need real byte streams
// without sockets: inside a testing/synctest bubble, where a socket read would
// stop the fake clock, and wherever faults have to happen at a chosen byte.
//
// A Network has hosts; hosts listen and dial by address. Between every ordered
// pair of hosts lies a link, and every fault is a property of a link:
//
//	        Dial                                   Accept
//	host A ------> [ link A->B: delay, cut, budget ] ------> host B
//	       <------ [ link B->A: delay, cut, budget ] <------
//
// A connection is two buffered byte queues, one per direction. A write returns
// once the bytes are in the queue, as with a kernel's send buffer, and blocks
// while it is full; this matters because a rendezvous pipe hides races that
// buffered connections show. A cut link behaves like a network that loses every
// packet: bytes written stay queued and arrive after the link is healed, a close
// is not noticed by the other side, a dial hangs. Reset is the other way a
// connection can end: both sides fail at once.
//
// Everything blocks on sync.Cond and timers only, so a bubble's clock can
// advance while a connection waits, and no goroutine runs on behalf of a
// connection.
package memnet
