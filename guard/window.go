package guard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/limit"
)

// kind is the purpose of a window.
type kind uint8

const (
	kindLimit kind = iota
	kindBan
	kindHard
	kindSlots
	kindOperatorBan // sees the bans of Guard.Ban
)

// window is one counter of a rule: one of its limits, its ban, or its hard limit.
type window struct {
	id     headgate.PolicyID
	limit  headgate.Limit
	local  headgate.PolicyID // this instance's part of the limit, as Local knows it; FallbackLocal only
	part   headgate.Limit    // that part
	policy string            // the name that callers see
	index  int               // the position among the limits
	number uint8             // the number in the store
	kind   kind
	mode   headgate.OpKind
	// algorithm is that of limit. maxWait is how far ahead an Op of kind Book may book.
	algorithm headgate.Algorithm
	maxWait   time.Duration
	// calendar has the windows of a limit with a calendar period; nil for others.
	calendar *calendar.Windows
	// beside: exceeding this window refuses nothing, so its Op is in a group of its own.
	beside bool
	// countsRejected: units counted for a refused request stay counted.
	countsRejected bool
	// countsFirst: all units of a refused request are counted, so the count is above the limit then.
	countsFirst bool
	// answers: the window of a ban that counts answers in place of attempts.
	answers bool
	// growth has the lengths of a ban with Growth; nil for others.
	growth *growth
	// quota says what a customer has of a quota; the zero terms belong to other windows.
	quota terms
}

// waits reports whether a request may have to wait for a departure.
func (w *window) waits() bool {
	return w.kind == kindLimit && (w.mode == headgate.Book || w.algorithm == headgate.LeakyBucket)
}

// room is the highest cost that the limit admits when nothing is used. Other windows admit any cost.
func (w *window) room() int64 {
	switch {
	case w.kind != kindLimit && w.kind != kindHard:
		return headgate.MaxUnits
	case w.quota.beyond:
		return w.quota.hard
	default:
		return limit.Room(headgate.Policy{Algorithm: w.algorithm, Limit: w.limit})
	}
}

const (
	// maxWindows bounds the limits of one rule: each is a separate state for every key.
	maxWindows = 32
	// The numbers of windows that are not limits. The numbers of limits are below.
	banWindow  = 255
	hardWindow = 254
	// slotsWindow has the requests in flight.
	slotsWindow = 253
	// windowNumbers bounds the numbers of periods with a length. It is prime, so that round periods spread.
	windowNumbers = 251
	// The numbers of calendar units. No usual period has weekWindow or yearWindow: no whole number of
	// seconds or minutes up to 60, hours up to 24, or days up to 31.
	dayWindow   = 252
	monthWindow = 251
	weekWindow  = 248
	yearWindow  = 227
)

// counters prepares the windows of one list of limits of a rule.
type counters struct {
	guard  *Guard
	config *Config
	rule   *Rule
	claims *claims
	all    []window
}

// windows prepares the counters for one list of limits of a rule.
func (g *Guard) windows(c *Config, r *Rule, policies []headgate.Policy, claimed *claims) ([]window, error) {
	if len(policies) == 0 && r.InFlight == 0 && r.Ban.For == 0 || len(policies) > maxWindows {
		return nil, fmt.Errorf("it has %d limits: give it 1 to %d", len(policies), maxWindows)
	}
	s := &counters{guard: g, config: c, rule: r, claims: claimed}
	for _, add := range [...]func([]headgate.Policy) error{s.addLimits, s.addBan, s.addHard} {
		if err := add(policies); err != nil {
			return nil, err
		}
	}
	return s.all, nil
}

func (s *counters) addLimits(policies []headgate.Policy) error {
	numbers := windowsByPeriod(policies)
	for i, policy := range policies {
		w := window{policy: s.rule.Name, index: i, number: numbers[i], beside: s.rule.Exceed.Action == Degrade}
		if len(policies) > 1 {
			w.policy += "-" + policy.Limit.Period()
		}
		if policy.Algorithm == headgate.Ban {
			return errBanIsNoLimit
		}
		if s.rule.Exceed.Action == Delay {
			if policy.Algorithm > headgate.LeakyBucket {
				return fmt.Errorf("delay has no departures in %s: use token_bucket or leaky_bucket", policy.Algorithm)
			}
			w.mode, policy.MaxWait = headgate.Book, s.rule.Exceed.MaxWait
		}
		if err := s.add(w, policy); err != nil {
			return err
		}
	}
	return nil
}

// addBan uses the rule's first limit for a ban without an After.
func (s *counters) addBan(policies []headgate.Policy) error {
	ban := s.rule.Ban
	if ban.For <= 0 {
		return nil
	}
	if !ban.After.HasPeriod() && len(policies) == 0 {
		return errors.New("its ban counts by the rule's limit, and there is none: write ban.after")
	}
	if !ban.After.HasPeriod() && policies[0].Limit.Calendar != headgate.NoCalendar {
		return fmt.Errorf("its ban counts by the rule's limit, which has a %s of the calendar: write ban.after, such as 100/1d",
			policies[0].Limit.Period())
	}
	if !ban.After.HasPeriod() {
		ban.After = headgate.Limit{Count: policies[0].Limit.Count, Per: policies[0].Limit.Per}
	}
	w := window{policy: s.rule.Name + "-ban", number: banWindow, kind: kindBan, answers: s.rule.BansAnswers()}
	if s.rule.bansApart() {
		w.number = apartNumber(policies)
	}
	w.beside = s.rule.Exceed.Action == Degrade && !s.rule.Exceed.Hard.Limit.HasPeriod()
	return s.add(w, headgate.Policy{Algorithm: headgate.Ban, Limit: ban.After, BanFor: ban.For})
}

func (s *counters) addHard([]headgate.Policy) error {
	hard := s.rule.Exceed.Hard
	if s.rule.Exceed.Action != Degrade || !hard.Limit.HasPeriod() {
		return nil
	}
	if hard.Algorithm == headgate.Ban {
		return errBanIsNoLimit
	}
	return s.add(window{policy: s.rule.Name + "-hard", number: hardWindow, kind: kindHard}, hard)
}

// add prepares a counter in the store. If the rule falls back to Local, add prepares this
// instance's part there.
func (s *counters) add(w window, policy headgate.Policy) error {
	id, err := s.claims.prepare(s.guard.store, s.rule.owing(w.stored(policy)))
	if err != nil {
		return err
	}
	w.id, w.limit, w.countsRejected = id, policy.Limit, policy.CountRejected
	w.countsFirst = policy.Algorithm == headgate.FixedWindow && policy.CountAll
	w.algorithm, w.maxWait = policy.Algorithm, policy.MaxWait
	if err := w.countIn(s.rule.Calendar); err != nil {
		return err
	}
	if s.rule.Fallback == FallbackLocal {
		part, err := LocalPolicy(policy, s.config.LocalShare)
		if err != nil {
			return fmt.Errorf("%s: %w", w.policy, err)
		}
		if w.local, err = s.claims.prepare(s.config.Local, s.rule.owing(w.stored(part))); err != nil {
			return fmt.Errorf("%s: in Local: %w", w.policy, err)
		}
		w.part = part.Limit
	}
	if w.kind == kindBan {
		if err := s.addGrowth(&w, policy); err != nil {
			return err
		}
	}
	s.all = append(s.all, w)
	return nil
}

// windowsByPeriod numbers limits by their periods, so that a limit keeps its counters when
// other limits are added, removed or moved. Of two lengths with the same number, the longer
// one moves on. A calendar unit never moves: its number belongs to no length.
func windowsByPeriod(policies []headgate.Policy) []uint8 {
	order := make([]int, len(policies))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(policies[a].Limit.Length(), policies[b].Limit.Length())
	})
	numbers := make([]uint8, len(policies))
	var taken [banWindow]bool
	for _, i := range order {
		n := LimitNumber(policies[i].Limit)
		for taken[n] {
			n = lengthNumber(uint64(n) + 1)
		}
		taken[n], numbers[i] = true, n
	}
	return numbers
}

// apartNumber gives a number for bans that are counted apart: the highest of those for lengths that no limit of the rule has. The limits
// alone choose it, so all instances have the same.
func apartNumber(policies []headgate.Policy) uint8 {
	numbers := windowsByPeriod(policies)
	n := uint8(windowNumbers - 1)
	for slices.Contains(numbers, n) || lengthNumber(uint64(n)) != n { // A rule has at most maxWindows limits.
		n--
	}
	return n
}

// LimitNumber gives the number under which stores keep a limit, if no other limit of its rule has that
// number. Two different periods of one quota must not share a number: a customer whose plan adds or
// removes one of them would lose the count of the other. Configurations use LimitNumber to find them.
func LimitNumber(l headgate.Limit) uint8 {
	switch l.Calendar {
	case headgate.Day:
		return dayWindow
	case headgate.Week:
		return weekWindow
	case headgate.Month:
		return monthWindow
	case headgate.Year:
		return yearWindow
	default:
		return lengthNumber(uint64(l.Per))
	}
}

// lengthNumber gives the first number from n on that belongs to lengths.
func lengthNumber(n uint64) uint8 {
	n %= windowNumbers
	if n == weekWindow || n == yearWindow {
		n++
	}
	return uint8(n)
}
