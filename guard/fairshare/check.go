package fairshare

import (
	"fmt"

	"github.com/headgate/headgate/internal/share"
)

// Check returns an error that names the first invalid setting and its valid values.
func (c *Config) Check() error {
	for _, s := range [...]struct {
		fits bool
		says string
		v    any
	}{
		{c.Capacity >= 0 && c.Capacity <= share.MaxCapacity, "Capacity is %d: use 0 to 1099511627776 units", c.Capacity},
		{c.Cycle >= LeastCycle && c.Cycle <= MostCycle, "Cycle is %s: use 10ms to 1h", c.Cycle},
		{c.Reservation >= 0 && c.Reservation <= 100, "Reservation is %d: use 0 to 100 percent", c.Reservation},
		{c.Division <= share.MaxMin, "Division is %d: use share.Loan or share.MaxMin", int(c.Division)},
		{c.Reclaim <= NextCycle, "Reclaim is %d: use AtOnce or NextCycle", int(c.Reclaim)},
		{
			c.NewClientsPerCycle >= 0 && c.NewClientsPerCycle <= MostNewClients,
			"NewClientsPerCycle is %d: use 0 to 1000", c.NewClientsPerCycle,
		},
		{c.ForgetAfter >= 1, "ForgetAfter is %d: use 1 or more cycles", c.ForgetAfter},
		{c.MaxClients >= 1 && c.MaxClients <= MostClients, "MaxClients is %d: use 1 to 10000", c.MaxClients},
		{len(c.Weights) <= c.MaxClients, "Weights has %d clients: use at most MaxClients", len(c.Weights)},
	} {
		if !s.fits {
			return fmt.Errorf("fairshare: "+s.says, s.v)
		}
	}
	for name, w := range c.Weights {
		if w < 1 || w > MostWeight || name == "" || name == Others {
			return fmt.Errorf("fairshare: the weight of client %q is %d: "+
				"use a name other than \"\" and %s, with a weight of 1 to %d", name, w, Others, MostWeight)
		}
	}
	return nil
}
