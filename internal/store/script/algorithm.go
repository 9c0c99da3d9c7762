package script

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// The source files of the algorithms, in the order of a script.
var (
	//go:embed lua/bucket.lua
	luaBucket string
	//go:embed lua/fixed.lua
	luaFixed string
	//go:embed lua/calendar.lua
	luaCalendar string
	//go:embed lua/long.lua
	luaLong string
	//go:embed lua/log.lua
	luaLog string
	//go:embed lua/window.lua
	luaWindow string
	//go:embed lua/ban.lua
	luaBan string
)

// luaAlgorithms gives the source of all algorithms.
func luaAlgorithms() string {
	return strings.Join([]string{luaEnv, luaNumber, luaState, luaBucket, luaFixed, luaCalendar, luaLong, luaLog, luaWindow, luaBan}, "\n")
}

// Codes of the scripts beside those of the algorithms.
const (
	kindZeroLimit = 6 // a bucket with a limit of 0
	kindCalendar  = 7 // a fixed window of the calendar
)

// render sets width and packed. The policy functions of the scripts decode packed.
func (p *Plan) render() {
	kind := byte(p.policy.Algorithm)
	switch p.policy.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		p.width = 3
		if p.interval.part == 0 {
			p.width = 2
		}
		if p.room == 0 {
			kind, p.blocks, p.width = kindZeroLimit, true, 0
		}
		p.packed = pack(kind, p.interval.us, p.interval.part, p.den, p.refill.us, p.refill.part,
			p.horizon.us, p.horizon.part, p.maxWait, p.room, p.most, p.owing.us, p.owing.part)
	case headgate.FixedWindow:
		p.width = 3
		if p.calendar() {
			p.width, p.packed = 6, pack(kindCalendar, p.room, microsUp(limit.LongestWindow(p.policy.Limit.Calendar)))
		} else {
			p.packed = pack(kind, p.room, p.per)
		}
		if p.policy.CountAll {
			p.packed += "\x02"
		} else {
			p.packed += flag(p.counts)
		}
		p.packed += packed(p.owe)
	case headgate.SlidingLog:
		p.width = 5
		p.packed = pack(kind, p.room, p.per) + flag(p.counts) + packed(p.owe)
	case headgate.SlidingWindow:
		p.width = 5
		p.packed = pack(kind, p.room, p.per, int64(p.policy.SubWindows), p.ceiling) + flag(p.counts) + packed(p.owe)
	default:
		p.width = 3
		p.packed = pack(kind, p.room, p.per, p.banFor)
	}
}

// fit derives the constants of the plan, and gives an error if the scripts cannot count its limit
// exactly.
func (p *Plan) fit() error {
	l := p.policy.Limit
	switch p.policy.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		if !p.derive() {
			return doesNotFit(p.policy)
		}
	case headgate.SlidingLog:
		if p.room > MaxLogCount {
			return &limit.PolicyError{
				Field: "count", Problem: fmt.Sprintf("%d is too long a log for Redis", p.room),
				Fix: fmt.Sprintf("use at most %d, or sliding_window, or token_bucket", MaxLogCount),
			}
		}
		return nil // Decisions are at whole microseconds, so a fraction of a microsecond in the period has no effect.
	case headgate.SlidingWindow:
		if err := p.fitWindow(); err != nil {
			return err
		}
		fallthrough
	default:
		if l.Per%time.Microsecond != 0 {
			return notWhole("period", l.Per)
		}
		if p.policy.BanFor%time.Microsecond != 0 {
			return notWhole("ban_for", p.policy.BanFor)
		}
	}
	return nil
}

// explain fills d as if the Op were the only Op of its group.
func (a *answer) explain(d *headgate.Decision) error {
	*d = headgate.Decision{Reason: headgate.WithinLimit, Limit: a.plan.room}
	switch a.plan.policy.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		return a.explainBucket(d)
	case headgate.FixedWindow:
		if a.plan.calendar() {
			return a.explainCalendar(d)
		}
		return a.explainFixed(d)
	case headgate.SlidingLog, headgate.SlidingWindow:
		return a.explainSliding(d)
	default:
		return a.explainBan(d)
	}
}

func (p *Plan) isBucket() bool { return p.policy.Algorithm <= headgate.LeakyBucket }

// hasList reports whether the states of a family have a list beside them.
func hasList(f limit.Family) bool { return f.Algorithm == headgate.SlidingLog }

// needsList reports whether a log of the plan can become too long for its state.
func (p *Plan) needsList() bool { return hasList(p.family) && p.room > inlineUnits }

// leavesAt gives the microsecond at which a unit of a log or of a sliding window expires that is taken at t.
func (p *Plan) leavesAt(t int64) int64 {
	if p.policy.Algorithm == headgate.SlidingLog {
		return t + p.per
	}
	return p.freeOf(t)
}

// Weight gives the cost of an Op for the server, in units of a token bucket's Op. A sliding log is
// read in part, and a sliding window completely.
func (p *Plan) Weight() int {
	switch p.policy.Algorithm {
	case headgate.SlidingLog:
		return 1 + int(p.policy.Limit.Count>>7)
	case headgate.SlidingWindow:
		return 1 + p.policy.SubWindows>>4
	default:
		return 1
	}
}

// grants reports whether fewer units than requested can be taken.
func (p *Plan) grants() bool { return limit.TraitsOf(p.policy.Algorithm).Ahead != limit.AheadNever }
