package acceptance

import (
	"strings"
	"time"
)

// within checks each key's account against its limit. The store admits at most the limit, plus
// the units that a failover may lose, which are at most one limit. The store admits at least the
// limit or the demand, minus the decisions of fallbacks, because each of these may have been
// counted. within gives the number of lost units.
func (l *ledger) within(mayLose func(path string) bool) (lost int) {
	l.t.Helper()
	for path, a := range l.keys {
		limit, once := limitOf(a.rule), 0
		if mayLose(path) {
			once = limit
		}
		if a.rule == "local" {
			lost += l.withinSeconds(path, a, once)
			continue
		}
		over := max(0, a.admitted-limit)
		lost += over
		if over > once {
			l.t.Errorf("%s: the store admitted %d, the limit is %d and a failover may have lost %d", path, a.admitted, limit, once)
		}
		if least := min(limit, a.asked) - a.fell; a.admitted < least {
			l.t.Errorf("%s: the store admitted %d of %d, and a fallback decided %d: want %d at least", path, a.admitted, a.asked, a.fell, least)
		}
		if a.rule == "allow" && a.passed != a.fell || a.rule == "deny" && a.passed != 0 {
			l.t.Errorf("%s: the fallback decided %d and let %d pass", path, a.fell, a.passed)
		}
	}
	return lost
}

// withinSeconds checks each window of a limit with a period of a second, and a loss in one of
// them.
func (l *ledger) withinSeconds(path string, a *account, once int) (lost int) {
	l.t.Helper()
	for second, n := range a.seconds {
		if over := n - limitOf(a.rule); over > 0 {
			lost += over
			if lost > once {
				l.t.Errorf("%s: the store admitted %d in second %d", path, n, second)
			}
		}
	}
	for second, n := range a.spare {
		if part := limitOf(a.rule) / 2; n > part {
			l.t.Errorf("%s: the fallback admitted %d by itself in second %d, its share is %d", path, n, second, part)
		}
	}
	return lost
}

// fallen gives the number of fallback decisions, of their keys, and of those that passed.
func (l *ledger) fallen() (decisions, keys, passed int) {
	for _, a := range l.keys {
		decisions, passed = decisions+a.fell, passed+a.passed
		if a.fell > 0 {
			keys++
		}
	}
	return decisions, keys, passed
}

// fellIn gives the durations of the fallback decisions for requests between two times.
func (l *ledger) fellIn(from, to time.Time) []time.Duration {
	var all []time.Duration
	for _, f := range l.fell {
		if f.at.After(from) && f.at.Before(to) {
			all = append(all, f.elapsed)
		}
	}
	return all
}

// late gives the delay of answers after their due times: the median and the 99.9th percentile.
func (l *ledger) late() (half, most time.Duration) {
	var all []time.Duration
	for _, s := range l.shots {
		all = append(all, s.late)
	}
	return quantile(all, 0.5), quantile(all, 0.999)
}

// lines counts the lines of the log that have all the words.
func (l *ledger) lines(words ...string) (n int) {
	for line := range strings.Lines(l.log) {
		has := 0
		for _, word := range words {
			if strings.Contains(line, word) {
				has++
			}
		}
		if has == len(words) {
			n++
		}
	}
	return n
}

// The log messages for a server with an open breaker, and for one that is used again.
const (
	givenUp = "server does not answer"
	isBack  = "server answers again"
)

// changes checks the log: one line for each opening of the breaker, as the metric counts, and
// one for each closing. On a machine that stalls, the breaker may open more often than the test
// intends.
func (l *ledger) changes(server string) {
	l.t.Helper()
	gone, back := l.lines(givenUp, server), l.lines(isBack, server)
	if gone == 0 || gone != back || gone < l.given {
		l.t.Errorf("%d lines tell that %s was given up, %d that it is back, and the metric counts %d: want as many, and one at least\n%s",
			gone, server, back, l.given, l.log)
	}
}

// tell logs the measured values.
func (l *ledger) tell(lost int, more string) {
	l.t.Helper()
	fell, keys, passed := l.fallen()
	half, most := l.late()
	l.t.Logf("%d requests under %d keys; decisions p50 %v, p99.9 %v (%s by the metric), greatest %v; from the due time to the answer p50 %v, p99.9 %v; "+
		"fallbacks decided %d under %d keys and let %d pass; given up %d times; %d units were lost; %s",
		len(l.shots), len(l.keys), quantile(l.durations, 0.5), quantile(l.durations, 0.999), l.histogram, quantile(l.durations, 1), half, most,
		fell, keys, passed, l.given, lost, more)
}

// none is for stores that lose nothing.
func none(string) bool { return false }
