// Package api is what a client and a server of Stave agree on: the gRPC
// definitions in stave/v1, the conversions between them and package catalog,
// the one table of error codes, and the one JSON encoder of the command line
// and of exports.
//
// Conversions are lossless both ways and never panic, whatever a message holds.
// What a message can express and the catalog cannot is refused with an error
// that is catalog.ErrInvalidArgument and names field, value and bound; every
// rule that has a code of its own is left to the catalog, so that it is decided
// once and the same on every node. Results share no memory with their input
// unless a function says so.
package api
