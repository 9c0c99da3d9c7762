package proxy

import (
	"os"
	"strings"
)

// Bars names the machines whose bars the scenes have: "AMD", or "Intel" with every other processor.
func Bars() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil && strings.Contains(string(text), "AuthenticAMD") {
		return "AMD"
	}
	return "Intel"
}

// here is the bar of this machine.
func (b bar) here() float64 {
	if Bars() == "AMD" {
		return b.amd
	}
	return b.intel
}
