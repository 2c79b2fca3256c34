package client

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

const dnsScheme = "dns:///"

// endpoint is one place to look for nodes: an address, or a name that stands for
// several.
type endpoint struct {
	host, port string
	// dns says that host is resolved by the client into addresses of several nodes.
	dns bool
}

func (e endpoint) String() string {
	addr := net.JoinHostPort(e.host, e.port)
	if e.dns {
		return dnsScheme + addr
	}
	return addr
}

func parseEndpoints(in []string) ([]endpoint, error) {
	if len(in) == 0 {
		return nil, errors.New("endpoints are empty, want at least one host:port")
	}
	var (
		out  []endpoint
		errs []error
		seen = map[endpoint]bool{}
	)
	for i, s := range in {
		e, err := parseEndpoint(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("endpoints[%d] is %q: %w", i, s, err))
			continue
		}
		if !seen[e] {
			seen[e] = true
			out = append(out, e)
		}
	}
	return out, errors.Join(errs...)
}

func parseEndpoint(s string) (endpoint, error) {
	rest, dns := strings.CutPrefix(s, dnsScheme)
	if strings.Contains(rest, "/") {
		return endpoint{}, errors.New("want host:port or dns:///host:port")
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return endpoint{}, fmt.Errorf("want host:port or dns:///host:port: %w", err)
	}
	if host == "" {
		return endpoint{}, errors.New("the host is empty")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return endpoint{}, fmt.Errorf("the port is %q, want 1 to 65535", port)
	}
	return endpoint{host: host, port: port, dns: dns}, nil
}
