package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken below the range that the kernel gives to outgoing
// connections: a killed node must find its port free when it comes back.
const (
	lowPort  = 12_000
	highPort = 31_000
)

// freePorts finds n ports on loopback that nothing listens on.
func freePorts(n int) ([]int, error) {
	start := lowPort + rand.IntN((highPort-lowPort)/2)
	var out []int
	for port := start; port < highPort && len(out) < n; port++ {
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		if err := l.Close(); err == nil {
			out = append(out, port)
		}
	}
	if len(out) < n {
		return nil, errors.New("no free ports on loopback")
	}
	return out, nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
