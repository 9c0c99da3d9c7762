// Package outcome writes what was measured, and on which machine, as Markdown for
// people and JSON for programs.
package outcome

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine says where the figures come from.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Procs  int    `json:"gomaxprocs"`
	Memory string `json:"memory"`
	System string `json:"system"`
	Go     string `json:"go"`
	Commit string `json:"commit"`
	Date   string `json:"date"`
	// Load is the load average of a minute before the run: others at work make noise.
	Load float64 `json:"load_before"`
}

// ThisMachine describes the machine that this program runs on.
func ThisMachine() Machine {
	return Machine{
		CPU:    field("/proc/cpuinfo", "model name"),
		Cores:  runtime.NumCPU(),
		Procs:  runtime.GOMAXPROCS(0),
		Memory: field("/proc/meminfo", "MemTotal"),
		System: strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + firstWords("/proc/sys/kernel/osrelease", 1)),
		Go:     runtime.Version(),
		Commit: commit(),
		Date:   time.Now().UTC().Format("2006-01-02T15:04Z"),
		Load:   load(),
	}
}

// field reads "name : value" from a file of the kernel; "unknown" when it cannot.
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

// commit names what was measured; uncommitted changes are marked.
func commit() string {
	name, err := exec.Command("git", "describe", "--always", "--dirty").Output() //nolint:noctx // it takes milliseconds
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
