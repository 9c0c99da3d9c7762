// Package outcome writes the measurements and a description of the machine, as Markdown
// for readers and as JSON for programs.
package outcome

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/proxy"
)

// Machine describes the machine on which the figures were measured.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Procs  int    `json:"gomaxprocs"`
	Memory string `json:"memory"`
	System string `json:"system"`
	// Hypervisor is as lscpu names it. "" without one.
	Hypervisor string `json:"hypervisor,omitempty"`
	// Bars names the kind of machine whose bars the scenes of proxies have.
	Bars   string `json:"bars"`
	Go     string `json:"go"`
	Commit string `json:"commit"`
	Date   string `json:"date"`
	// Load is the load average of the last minute before the run. Other processes disturb
	// the measurement. -1 means unknown.
	Load float64 `json:"load_before"`
}

// ThisMachine describes the machine that runs this program.
func ThisMachine() Machine {
	return Machine{
		CPU:        field("/proc/cpuinfo", "model name"),
		Cores:      runtime.NumCPU(),
		Procs:      runtime.GOMAXPROCS(0),
		Memory:     field("/proc/meminfo", "MemTotal"),
		System:     strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + firstWords("/proc/sys/kernel/osrelease", 1)),
		Hypervisor: hypervisor(), Bars: proxy.Bars(),
		Go:     runtime.Version(),
		Commit: commit(),
		Date:   time.Now().UTC().Format("2006-01-02T15:04Z"),
		Load:   load(),
	}
}

// field returns the value of a "name : value" line of a kernel file, or "unknown".
func field(file, name string) string {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// hypervisor returns the vendor of the hypervisor.
func hypervisor() string {
	cmd := exec.Command("lscpu") //nolint:noctx // The command takes milliseconds.
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	text, err := cmd.Output()
	if err != nil {
		return ""
	}
	_, vendor, _ := strings.Cut(string(text), "Hypervisor vendor:")
	vendor, _, _ = strings.Cut(vendor, "\n")
	return strings.TrimSpace(vendor)
}

func firstWords(file string, n int) string {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return ""
	}
	words := strings.Fields(string(text))
	return strings.Join(words[:min(n, len(words))], " ")
}

func load() float64 {
	average, err := strconv.ParseFloat(firstWords("/proc/loadavg", 1), 64)
	if err != nil {
		return -1
	}
	return average
}

// commit returns the commit of the working directory. The suffix "-dirty" means that there
// are uncommitted changes.
func commit() string {
	name, err := exec.Command("git", "describe", "--always", "--dirty").Output() //nolint:noctx // The command takes milliseconds.
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
