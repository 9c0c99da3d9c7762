package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
)

const (
	costHeaderPrefix = "header:"
	bytesPrefix      = "bytes:"
)

// cost reads how many units a request takes: a number, or the header that states the number.
// all are the limits of the rule, and of each override.
func (s *section) cost(r *guard.Rule, all []limits) {
	if s.estimate(r) {
		s.maxCost(r, false, all)
		return
	}
	v, stated := s.unitsOf(headgate.MaxUnits, &r.Cost, &r.CostHeader, &r.Announced)
	if r.Announced {
		s.announced(v, r)
	}
	if r.Cost > 0 {
		s.checkCost(v, r.Cost, all)
	}
	s.maxCost(r, stated || s.blamed(s.pathOf("cost")), all)
}

// unitsOf reads a cost: a number up to most into *number, or the name of a header into
// *header. stated reports that the field names a header, even an invalid one. announced is set for the bytes of the request, and nil
// where bytes do not count.
func (s *section) unitsOf(most int64, number *int64, header *string, announced *bool) (v value, stated bool) {
	text, pattern := "Units that a request takes, or the header in which a request states them.", costPattern
	if announced != nil {
		text, pattern = "Units that a request takes, or the header in which a request states them. bytes:request takes the bytes of its "+
			"body, and estimate the tokens that the request will use: the default with settle: openai and its like.", costBytesPattern
	}
	s.declare("cost", field.Taken, text)
	s.outline.field("cost").number(1, 1, most)
	s.outline.field("cost").written("", pattern)
	v, ok := s.scalar("cost", "a number or header:NAME")
	if !ok {
		return v, false
	}
	if bodies, found := strings.CutPrefix(v.text(), bytesPrefix); found {
		switch {
		case announced == nil:
			s.fault(v, v.text()+" is only the cost of a rule", "use a number or header:NAME, or write cost: bytes:request in a rule")
		case bodies != guard.RequestBytes.String():
			s.fault(v, quote(v.text())+" is not known before the answer", "write cost: bytes:request, or settle: bytes:response")
		default:
			*announced = true
		}
		return v, false
	}
	name, stated := strings.CutPrefix(v.text(), costHeaderPrefix)
	switch {
	case stated && strings.EqualFold(name, "Host"):
		s.fault(v, v.text()+" is not available as a header", "use a header that callers state the cost in, like header:X-Cost")
	case stated:
		*header, _ = s.headerName(v, len(costHeaderPrefix), name, "header:X-Cost")
	case strings.Trim(v.text(), "-+.0123456789") != "":
		s.fault(v, "must be a whole number or header:NAME, not "+quote(v.text()), "write it like 20, or header:X-Cost")
	default:
		s.wholeNumber(v, number, 1, most)
	}
	return v, stated
}

// announced counts the bytes of the request's body: those that it announces at first, and those that have passed at its end.
func (s *section) announced(v value, r *guard.Rule) {
	switch {
	case s.has(leaseName):
		s.fault(v, "the units of a lease stay counted, and bytes are known at the end of a request", "use a number or header:NAME")
	case r.SettleBody != nil:
		r.Announced = false
		s.fault(v, "takes bytes, and settle states tokens", "write cost: estimate")
	case r.Bytes == guard.ResponseBytes:
		s.fault(v, "takes the bytes of the request, and settle counts only those of the response",
			"write settle: bytes:both, or remove cost")
	case r.Bytes == 0 && r.Settle == "" && !s.blamed(s.pathOf("settle")):
		r.Bytes = guard.RequestBytes
	}
}

// checkCost rejects a cost that one of the limits never admits.
func (s *section) checkCost(v value, cost int64, all []limits) {
	for _, l := range all {
		for i, p := range l.policies {
			room := limit.Room(p)
			if room == 0 || cost <= room {
				continue
			}
			where := ""
			if l.values[i].path != s.pathOf("limits")+fmt.Sprintf("[%d]", i) {
				where = " (" + l.values[i].path + ")"
			}
			s.fault(v, fmt.Sprintf("%d is more than %s%s admits at once (%d)", cost, p.Limit, where, room),
				fmt.Sprintf("use at most %d, or raise the limit", room))
			return
		}
	}
}

// maxCost reads the highest cost that a request may state. It defaults to the highest cost that
// the limits admit.
func (s *section) maxCost(r *guard.Rule, stated bool, all []limits) {
	s.declare("max_cost", field.Taken, "Highest cost that a request may state. Default: the highest cost that the limits admit at once.")
	v, ok := s.mostStated(headgate.MaxUnits, stated)
	if r.CostHeader == "" {
		return
	}
	bound, by := admitted(all)
	if bound > 0 {
		r.MaxCost = bound
	}
	if !ok || !s.wholeNumber(v, &r.MaxCost, 1, headgate.MaxUnits) || bound == 0 || r.MaxCost <= bound {
		return
	}
	s.fault(v, fmt.Sprintf("%d is more than %s admits at once (%d)", r.MaxCost, by.Limit, bound),
		fmt.Sprintf("use at most %d, or raise the limit", bound))
}

// mostStated reads max_cost, which is valid only if the cost comes from a header. It reports
// false if the field is missing or at fault.
func (s *section) mostStated(most int64, stated bool) (value, bool) {
	s.outline.field("max_cost").number(0, 1, most)
	v, ok := s.scalar("max_cost", "a whole number")
	if ok && !stated {
		where, _ := s.given("max_cost")
		s.fault(where, "is only valid with a cost from a header", "remove it, or use cost: header:X-Cost")
		return v, false
	}
	return v, ok
}

// admitted returns the highest cost that the limits admit at once, and the limit that sets it. A
// key can take only what the strictest of its limits admits, but overrides may admit more.
// units is 0 if no limit admits anything.
func admitted(all []limits) (units int64, by headgate.Policy) {
	for _, l := range all {
		var least headgate.Policy
		for _, p := range l.policies {
			if room := limit.Room(p); room > 0 && (!least.Limit.HasPeriod() || room < limit.Room(least)) {
				least = p
			}
		}
		if least.Limit.HasPeriod() && limit.Room(least) > units {
			units, by = limit.Room(least), least
		}
	}
	return units, by
}

// mostSoft is the highest soft limit: at 100%, no allowed request would get a warning.
const mostSoft = 99

// soft reads the percentage of the limits above which requests pass with a warning.
func (s *section) soft(r *guard.Rule, l limits) {
	s.percent(s.declare("soft", field.Taken, "Percentage of a limit, 1% to 99%, above which a request passes with a warning."),
		&r.Soft, 1, mostSoft)
	if r.Soft == 0 {
		return
	}
	for _, p := range l.policies {
		if p.Limit.Count == 0 {
			s.fault(s.keyOf("soft"), fmt.Sprintf("has no effect with %s, which allows no request", p.Limit),
				"remove it, or raise the limit")
			return
		}
	}
}
