//go:build soak

package acceptance

import "testing"

// TestSoakReplayMemory replays logs of 10 GB.
func TestSoakReplayMemory(t *testing.T) { replayMemory(t, 10<<30) }
