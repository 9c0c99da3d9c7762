package merge

import (
	"github.com/headgate/headgate/cmd/internal/admin"
)

// maxSteps bounds a merged history. The longest tier has fewer.
const maxSteps = 512

// OfHistory makes one document of the histories of a fleet, with the series of names: each step has the sum of the values of the instances
// that have one, and none if no instance has one. Gauges, like
// requests in flight and capacities, belong to one instance each, and add up too. Instances with steps of another length, or
// at other times, are left out. Steps before and after those of own belong to it as long as there are at most maxSteps.
func OfHistory(own *admin.History, others []*admin.History, names []string) *admin.History {
	start, end := own.Start, own.Start+int64(steps(own)*own.Step)
	all := []*admin.History{own}
	for _, h := range others {
		n := steps(h)
		if own.Step <= 0 || h.Step != own.Step || n == 0 || n > maxSteps || (h.Start-own.Start)%int64(own.Step) != 0 {
			continue
		}
		first, last := min(start, h.Start), max(end, h.Start+int64(n*own.Step))
		if end == own.Start { // The own instance has just started.
			first, last = h.Start, h.Start+int64(n*own.Step)
		}
		if h.Start < 0 || (last-first)/int64(own.Step) > maxSteps {
			continue
		}
		start, end, all = first, last, append(all, h)
	}
	merged := &admin.History{Instance: own.Instance, Start: start, Step: own.Step, Series: make(map[string][]*float64, len(names))}
	n := 0
	if own.Step > 0 {
		n = int((end - start) / int64(own.Step))
	}
	for _, name := range names {
		sum := make([]*float64, n)
		for _, h := range all {
			for i, v := range h.Series[name] {
				at := int(h.Start-start)/own.Step + i
				if v == nil || at < 0 || at >= n {
					continue
				}
				value := *v
				if sum[at] != nil {
					value += *sum[at]
				}
				sum[at] = &value
			}
		}
		merged.Series[name] = sum
	}
	return merged
}

// steps is the number of steps of the longest series.
func steps(h *admin.History) (n int) {
	for _, values := range h.Series {
		n = max(n, len(values))
	}
	return n
}
