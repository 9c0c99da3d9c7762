package redis

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStartAhead: the server's clock is ahead, or behind.
func TestStartAhead(t *testing.T) {
	for _, ahead := range []time.Duration{100 * 24 * time.Hour, -time.Hour} {
		s := StartAhead(t, ahead)
		text, _, _ := strings.Cut(s.CLI("TIME"), "\n")
		seconds, err := strconv.ParseInt(text, 10, 64)
		if got := time.Until(time.Unix(seconds, 0)); err != nil || got < ahead-time.Minute || got > ahead+time.Minute {
			t.Errorf("the clock is ahead by %s (%v), want %s", got, err, ahead)
		}
	}
}
