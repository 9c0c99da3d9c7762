package config

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
)

// TestMeteringSummary: it hides the query of the address, and warns of a token without TLS.
func TestMeteringSummary(t *testing.T) {
	for address, warns := range map[string]bool{"https://billing.example/a?key=secret": false, "http://billing.example/a?key=secret": true} {
		c := &Config{Metering: &Metering{Journal: "j", Events: &MeteringEvents{URL: address, TokenFile: "t"}}}
		var b strings.Builder
		c.writeMetering(&b)
		text := b.String()
		if strings.Contains(text, "secret") || !strings.Contains(text, "://billing.example/a") || strings.Contains(text, "use https") != warns {
			t.Errorf("%s: %s", address, text)
		}
	}
}

// TestMeteringMemory: each further quota has its own sums for each customer. Rules of one quota share them.
func TestMeteringMemory(t *testing.T) {
	c := &Config{Metering: &Metering{MaxCustomers: 1000}}
	if got, want := c.meteringMemory(), int64(meteringBatchBytes+1000*meteringRowBytes); got != want {
		t.Errorf("without a quota: %d bytes, want %d", got, want)
	}
	c.Rules = make([]guard.Rule, 5)
	for i, name := range []string{"a", "b", "b", "c"} {
		c.Rules[i].Quota = name
	}
	if got, want := c.meteringMemory(), int64(meteringBatchBytes+1000*(meteringRowBytes+2*meteringQuotaBytes)); got != want {
		t.Errorf("with three quotas: %d bytes, want %d", got, want)
	}
}
