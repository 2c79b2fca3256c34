package report

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Machine describes where a run was made.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Memory     string `json:"memory"`
	Kernel     string `json:"kernel"`
	FileSystem string `json:"file_system"`
	Go         string `json:"go"`
	Java       string `json:"java,omitempty"`
}

// Describe looks at this machine and the file system of dir. What cannot be
// found out is "unknown".
func Describe(dir string) Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: "unknown", Memory: "unknown", Kernel: "unknown", FileSystem: "unknown"}
	if v, ok := field("/proc/cpuinfo", "model name"); ok {
		m.CPU = v
	}
	if v, ok := field("/proc/meminfo", "MemTotal"); ok {
		var kb int
		if _, err := fmt.Sscanf(v, "%d kB", &kb); err == nil {
			m.Memory = fmt.Sprintf("%.0f GiB", float64(kb)/(1<<20))
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = "Linux " + strings.TrimSpace(string(b))
	}
	if v, ok := fileSystem(dir); ok {
		m.FileSystem = v
	}
	return m
}

// field finds the first "name : value" of a file of /proc.
func field(path, name string) (string, bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close() //nolint:errcheck // only read
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// fileSystem finds the mount that holds dir.
func fileSystem(dir string) (string, bool) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	b, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return "", false
	}
	best, kind := "", ""
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		at := strings.TrimSuffix(f[1], "/") + "/"
		if strings.HasPrefix(abs+"/", at) && len(at) >= len(best) {
			best, kind = at, f[2]
		}
	}
	return kind, best != ""
}

func (m Machine) lines() [][]string {
	out := [][]string{
		{"", "machine"},
		{"CPU", m.CPU},
		{"cores", fmt.Sprint(m.Cores)},
		{"memory", m.Memory},
		{"kernel", m.Kernel},
		{"file system of the data", m.FileSystem},
		{"Go", m.Go},
	}
	if m.Java != "" {
		out = append(out, []string{"Java", m.Java})
	}
	return out
}
