package etcd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
)

const (
	// maxRecord bounds a value that is read. A plan of maxMembers is smaller.
	maxRecord = 1 << 20
	// maxMembers bounds the instances of a plan.
	maxMembers = 4096
	// maxTime bounds times in microseconds: in the year 2255.
	maxTime = 1 << 53
	// maxDemand bounds a reported demand.
	maxDemand = schedule.MaxLimit
)

// errRecord says that a value in etcd is invalid.
var errRecord = errors.New("pace/etcd: not a valid record")

// decode reads one JSON value without unknown fields and without data after it.
func decode(value []byte, into any) error {
	if len(value) > maxRecord {
		return fmt.Errorf("%w: %d bytes: at most %d are read", errRecord, len(value), maxRecord)
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %.200s", errRecord, err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: there is more behind it", errRecord)
	}
	return nil
}

// encode writes a record. The package's own records never fail.
func encode(record any) string {
	text, err := json.Marshal(record)
	if err != nil {
		return err.Error() // No reader accepts this as a record.
	}
	return string(text)
}

// limitRecord is the limit that operators write.
type limitRecord struct {
	Limit   *int64  `json:"limit"`
	Per     string  `json:"per"`
	Balance Balance `json:"balance,omitempty"`
}

func parseLimit(value []byte) (Limit, error) {
	var r limitRecord
	if err := decode(value, &r); err != nil {
		return Limit{}, err
	}
	if r.Limit == nil {
		return Limit{}, fmt.Errorf("%w: no limit: write {\"limit\":1000,\"per\":\"1s\"}", errRecord)
	}
	per, err := time.ParseDuration(r.Per)
	if err != nil {
		return Limit{}, fmt.Errorf("%w: per %.40q: write a time such as 1s", errRecord, r.Per)
	}
	l := Limit{Count: *r.Limit, Per: per, Balance: r.Balance}
	if l.Balance == "" {
		l.Balance = Even
	}
	if l.Balance != Even && l.Balance != retired {
		return Limit{}, fmt.Errorf("%w: balance %.40q: write even", errRecord, string(l.Balance))
	}
	return l, checkWindow(l.Count, l.Per)
}

// check checks a limit before it is written.
func (l Limit) check() error {
	switch l.Balance {
	case Even:
	case retired:
		return fmt.Errorf("pace/etcd: %s", NoDemand)
	default:
		return fmt.Errorf("%w: balance %.40q: write even", errRecord, string(l.Balance))
	}
	return checkWindow(l.Count, l.Per)
}

// checkWindow checks the bounds of package schedule, and that windows begin at whole microseconds,
// as they are written.
func checkWindow(limit int64, per time.Duration) error {
	if _, err := schedule.Even(limit, per, 1, 0); err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	if per%time.Microsecond != 0 {
		return fmt.Errorf("%w: a window of %v: use whole microseconds", errRecord, per)
	}
	return nil
}

func (l Limit) encode() string {
	return encode(limitRecord{Limit: &l.Count, Per: l.Per.String(), Balance: l.Balance})
}

// plan has the members, their parts of a limit, and the time from which it is valid.
type plan struct {
	limit   int64
	per     time.Duration
	members []string // by index
	units   []int64  // of a turn, by index, from an instance of an earlier version; nil: all equal
	from    headgate.Instant
	// limitRevision is the revision of the limit that the plan follows.
	limitRevision int64
}

type planRecord struct {
	Limit         *int64   `json:"limit"`
	Per           string   `json:"per"`
	Members       []string `json:"members"`
	Units         []int64  `json:"units,omitempty"`
	FromUS        int64    `json:"from_us"`
	LimitRevision int64    `json:"limit_revision"`
}

func (p *plan) encode() string {
	return encode(planRecord{
		Limit: &p.limit, Per: p.per.String(), Members: p.members, Units: p.units,
		FromUS: int64(p.from) / 1000, LimitRevision: p.limitRevision,
	})
}

func parsePlan(value []byte) (*plan, error) {
	var r planRecord
	if err := decode(value, &r); err != nil {
		return nil, err
	}
	per, err := time.ParseDuration(r.Per)
	if err != nil || r.Limit == nil {
		return nil, fmt.Errorf("%w: a plan needs a limit and per", errRecord)
	}
	if err := checkWindow(*r.Limit, per); err != nil {
		return nil, err
	}
	p := &plan{
		limit: *r.Limit, per: per, members: r.Members, units: r.Units,
		from: headgate.Instant(r.FromUS * 1000), limitRevision: r.LimitRevision,
	}
	if r.FromUS < 0 || r.FromUS > maxTime || int64(p.from)%int64(per) != 0 {
		return nil, fmt.Errorf("%w: from_us %d is no edge of a window of %v", errRecord, r.FromUS, per)
	}
	if err := checkMembers(p.members); err != nil {
		return nil, err
	}
	if err := p.checkUnits(); err != nil {
		return nil, err
	}
	return p, nil
}

func checkMembers(members []string) error {
	if len(members) < 1 || len(members) > maxMembers {
		return fmt.Errorf("%w: a plan of %d members: they are from 1 to %d", errRecord, len(members), maxMembers)
	}
	seen := make(map[string]bool, len(members))
	for _, id := range members {
		if err := checkName("member", id); err != nil {
			return fmt.Errorf("%w: %w", errRecord, err)
		}
		if seen[id] {
			return fmt.Errorf("%w: member %s is there twice", errRecord, id)
		}
		seen[id] = true
	}
	return nil
}

func (p *plan) checkUnits() error {
	if p.units == nil {
		return nil
	}
	if len(p.units) != len(p.members) {
		return fmt.Errorf("%w: units of %d members: there are %d", errRecord, len(p.units), len(p.members))
	}
	left := p.limit * turns(p.limit, len(p.members))
	for _, n := range p.units {
		if n < 0 || n > left {
			return fmt.Errorf("%w: the units exceed the limit", errRecord)
		}
		left -= n
	}
	if left != 0 {
		return fmt.Errorf("%w: the units leave %d of the limit", errRecord, left)
	}
	return nil
}

// turns is the number of windows in which the instances of an earlier version use their units.
func turns(limit int64, members int) int64 {
	const fine, most = 64, 1 << 16
	wanted := fine * int64(members)
	if limit <= 0 || limit >= wanted {
		return 1
	}
	return min((wanted-1)/limit+1, most)
}

// part gives the plan of the instance with an index. Instances of an earlier version divide unevenly:
// in each window, one with n units in T windows has n/T units, rounded up or down. This instance
// rounds down in each window. So all parts together stay within the limit.
func (p *plan) part(index int) (schedule.Plan, error) {
	if p.units != nil {
		return schedule.Even(p.units[index]/turns(p.limit, len(p.members)), p.per, 1, 0)
	}
	return schedule.Even(p.limit, p.per, len(p.members), index)
}
