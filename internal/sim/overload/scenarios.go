package overload

import (
	"strconv"
	"time"
)

// changeAt is the time at which the capacity changes.
const changeAt = 40 * time.Second

// Scenarios returns all scenarios, in the order of the table.
func Scenarios() []Scenario {
	var all []Scenario
	for _, load := range []float64{0.5, 0.9, 1.2, 2, 5, 10} {
		all = append(all, Scenario{Name: "bimodal " + number(load), Costs: Bimodal{}, Load: load})
	}
	for _, load := range []float64{2, 10} {
		all = append(all, Scenario{Name: "lognormal " + number(load), Costs: Lognormal{}, Load: load})
	}
	return append(all,
		Scenario{Name: "hidden", Costs: Bimodal{Hidden: true}, Load: 5},
		Scenario{
			Name: "drop", Costs: Lognormal{}, Load: 1.5, SpeedFrom: 1, SpeedTo: 0.5, SpeedAt: changeAt,
			From: changeAt, To: 2 * changeAt,
		},
		Scenario{
			Name: "rise", Costs: Lognormal{}, Load: 1.5, SpeedFrom: 0.5, SpeedTo: 1, SpeedAt: changeAt,
			From: changeAt, To: 2 * changeAt,
		},
		Scenario{
			Name: "burst", Costs: Bimodal{}, Load: 0.7, BurstLoad: 10,
			BurstFrom: 30 * time.Second, BurstTo: 33 * time.Second,
		},
		Scenario{
			Name: "slow", Costs: Lognormal{}, Load: 0.8, Slow: true,
			SlowFrom: 30 * time.Second, SlowTo: 70 * time.Second, From: 30 * time.Second, To: 70 * time.Second,
		},
		Scenario{Name: "hang", Costs: Bimodal{}, Load: 0.7, HangFrom: 30 * time.Second, HangTo: 40 * time.Second},
		Scenario{
			Name: "hang, slow bodies", Costs: Bimodal{}, Load: 0.7, HangFrom: 30 * time.Second, HangTo: 40 * time.Second, SlowBodies: 0.5,
		},
		Scenario{Name: "pool", Costs: Lognormal{}, Load: 5, Pool: 8},
		Scenario{Name: "abuse", Costs: Lognormal{}, Load: 5, Abuse: true},
		Scenario{Name: "liar", Costs: Lognormal{}, Load: 5, Abuse: true, Lie: true},
		Scenario{Name: "poison", Costs: Lognormal{}, Load: 5, Poison: 20},
		Scenario{Name: "refusals", Costs: Bimodal{}, Load: 10, RefusalCPU: 30 * time.Microsecond},
	)
}

// Named returns the scenario with a name, and whether there is one.
func Named(name string) (Scenario, bool) {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

func number(load float64) string { return strconv.FormatFloat(load, 'g', -1, 64) }
