package watch

// EventSize is the estimate that the bounds in bytes use.
var EventSize = eventSize
