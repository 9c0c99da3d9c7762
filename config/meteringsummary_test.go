package config

import (
	"strings"
	"testing"
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
