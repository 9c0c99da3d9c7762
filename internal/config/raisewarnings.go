package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// RaiseWarnings tells which customers of the file have a raise that has ended at a time, so that it has no effect. A file stays valid
// when the time of a raise is over. There is at most one text, which names three customers.
func (c *Config) RaiseWarnings(now time.Time) []string {
	var ended []string
	n := 0
	for i := range c.Customers {
		if customer := &c.Customers[i]; customer.Raise != nil && raiseEnded(customer, now) {
			if n++; n <= mostNames {
				ended = append(ended, quote(customer.Name))
			}
		}
	}
	if n == 0 {
		return nil
	}
	text := "customer " + strings.Join(ended, ", ")
	if n > mostNames {
		text += fmt.Sprintf(" and %d more", n-mostNames)
	}
	return []string{text + ": the raise has ended, and has no effect: remove the raise, or set a later until"}
}

// raiseEnded reports whether the raise of a customer has ended.
func raiseEnded(customer *guard.Customer, now time.Time) bool {
	return customer.Raise.Until <= headgate.Instant(now.UnixNano())
}
