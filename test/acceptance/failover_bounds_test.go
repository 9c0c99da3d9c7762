package acceptance

import (
	"strings"
	"time"
)

// within checks each key's account against the bound of its limit: no more by the store than
// the limit, and than what a failover may have lost, at most the limit's worth once; and no
// less than the limit, or what was asked, less those that fallbacks decided, each
// of which may have been counted. It gives what was lost.
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

// withinSeconds checks a limit of a second: each one by itself, and a loss in one of them.
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

// fallen is how many decisions fallbacks made, under how many keys, and how many passed.
func (l *ledger) fallen() (decisions, keys, passed int) {
	for _, a := range l.keys {
		decisions, passed = decisions+a.fell, passed+a.passed
		if a.fell > 0 {
			keys++
		}
	}
	return decisions, keys, passed
}

// fellIn gives how long the decisions of fallbacks took that were asked for between two times.
func (l *ledger) fellIn(from, to time.Time) []time.Duration {
	var all []time.Duration
	for _, f := range l.fell {
		if f.at.After(from) && f.at.Before(to) {
			all = append(all, f.took)
		}
	}
	return all
}

// late gives when clients had their answers, after they were due: half of them, and 999 in 1000.
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

// What is logged of a server that is given up, and of one that is asked again.
const (
	givenUp = "server does not answer"
	isBack  = "server answers again"
)

// changes checks that there is one line each time that the server was given up, which the
// metric counts, and one each time that it was back. On a machine that stalls it may be
// given up more often than the test means.
func (l *ledger) changes(server string) {
	l.t.Helper()
	gone, back := l.lines(givenUp, server), l.lines(isBack, server)
	if gone == 0 || gone != back || gone < l.given {
		l.t.Errorf("%d lines tell that %s was given up, %d that it is back, and the metric counts %d: want as many, and one at least\n%s",
			gone, server, back, l.given, l.log)
	}
}

// tell writes down what was measured.
func (l *ledger) tell(lost int, more string) {
	l.t.Helper()
	fell, keys, passed := l.fallen()
	half, most := l.late()
	l.t.Logf("%d requests under %d keys; decisions p50 %v, p99.9 %v (%s by the metric), greatest %v; from the due time to the answer p50 %v, p99.9 %v; "+
		"fallbacks decided %d under %d keys and let %d pass; given up %d times; %d units were lost; %s",
		len(l.shots), len(l.keys), quantile(l.took, 0.5), quantile(l.took, 0.999), l.histogram, quantile(l.took, 1), half, most,
		fell, keys, passed, l.given, lost, more)
}

// none is for stores that lose nothing.
func none(string) bool { return false }
