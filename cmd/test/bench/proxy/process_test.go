package proxy

import (
	"errors"
	"testing"
)

// TestEndedProcess checks that a program which has exited is not taken for a side, although
// something else may listen on its address.
func TestEndedProcess(t *testing.T) {
	addresses, err := freeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := start(t.Context(), "ended", "http://"+addresses[0], t.TempDir(), "false")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if err := p.listens(t.Context()); !errors.Is(err, errEnded) {
		t.Errorf("listens: %v, want %v", err, errEnded)
	}
	if _, err := p.processorTime(); !errors.Is(err, errEnded) {
		t.Errorf("processorTime: %v, want %v", err, errEnded)
	}
}
