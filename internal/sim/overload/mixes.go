package overload

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Mixes draws n scenarios. Bars on drawn scenarios show whether a design is made for the named
// ones alone.
func Mixes(seed uint64, n int) []Scenario {
	r := rand.New(rand.NewPCG(seed, 15))
	all := make([]Scenario, n)
	for i := range all {
		s := Scenario{
			Costs: Costs(Lognormal{}), Load: 1.2 + 6*r.Float64(), Tenants: 2 + r.IntN(19),
			Wait: time.Duration(1+r.IntN(50)) * time.Millisecond, Abuse: r.IntN(3) == 0,
		}
		if r.IntN(2) == 0 {
			s.Costs = Bimodal{Hidden: r.IntN(3) == 0}
		}
		if r.IntN(3) == 0 {
			s.SpeedFrom, s.SpeedTo, s.SpeedAt = 1, 0.4+0.6*r.Float64(), changeAt
			s.From, s.To = changeAt, 2*changeAt
		}
		s.Lie = s.Abuse && r.IntN(2) == 0
		s.Name = fmt.Sprintf("mix %d: %T, load %.1f, %d tenants, wait %v", i+1, s.Costs, s.Load, s.Tenants, s.Wait)
		all[i] = s
	}
	return all
}
