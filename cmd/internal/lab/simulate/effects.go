package simulate

import (
	"slices"

	"github.com/headgate/headgate"
)

// checkEffects refuses flags that would have no effect beside the others, and values that are given twice.
func (o *Options) checkEffects() error {
	given := func(names ...string) string {
		for _, name := range names {
			if slices.Contains(o.Given, name) {
				return name
			}
		}
		return ""
	}
	if o.Limit == "" {
		if name := given("algorithm", "sub-windows"); name != "" {
			return usagef("--%s has no effect with --config: the rules say how they count: remove it, or compare with --limit", name)
		}
	}
	if o.Scenario != "" && o.Limit == "" {
		if name := given("traffic", "rate", "keys", "zipf", "jitter", "for"); name != "" {
			field := name
			if name == "for" {
				field = "length"
			}
			return usagef("--%s has no effect with --scenario: write %s in %s, or remove the flag", name, field, o.ScenarioName)
		}
		return nil
	}
	switch {
	case o.Jitter && o.Traffic != retries:
		return usagef("--jitter has no effect with %s traffic: write --traffic retry, whose refused requests come back, or remove it",
			o.Traffic)
	case o.Zipf != "" && o.Keys == 1:
		return usagef("--zipf has no effect with one key: write --keys, like --keys 1000")
	}
	return o.checkContenders(given("sub-windows") != "")
}

// checkContenders checks the algorithms of a comparison and their sub-windows.
func (o *Options) checkContenders(subWindows bool) error {
	for i, name := range o.Algorithms {
		if slices.Contains(o.Algorithms[:i], name) {
			return usagef("--algorithm has %s twice: remove one of them", name)
		}
	}
	for i, n := range o.SubWindows {
		if slices.Contains(o.SubWindows[:i], n) {
			return usagef("--sub-windows has %d twice: remove one of them", n)
		}
	}
	sliding := headgate.SlidingWindow.String()
	if subWindows && len(o.Algorithms) > 0 && !slices.Contains(o.Algorithms, sliding) {
		return usagef("--sub-windows has no effect without %s: add it to --algorithm, or remove --sub-windows", sliding)
	}
	return nil
}
