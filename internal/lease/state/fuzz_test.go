package state

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// FuzzMessages sends any reports to a root, in any order, also with impossible versions. The
// ledger stays consistent and within the capacity.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("a report of a holder, then another one, and some more bytes for the numbers of both"), false)
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 255, 254, 253, 252, 251, 250, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 9, 9, 9, 9}, true)
	f.Fuzz(func(t *testing.T, data []byte, restarted bool) {
		c := config(Resource{Algorithm: MaxMin, Capacity: 1000, Floors: []int{10, 20}})
		c.Term, c.Restarted = 3, restarted
		w := newWorld(t, 0)
		n := &node{w: w, name: "root", config: c, server: start(t, c, 0), wake: never}
		w.nodes = append(w.nodes, n)
		next := func(bound int64) int64 {
			var b [2]byte
			data = data[copy(b[:], data):]
			return int64(binary.LittleEndian.Uint16(b[:])) % bound
		}
		var seq uint64
		for len(data) > 0 {
			w.now += headgate.Instant(next(2000)) * ms
			seq += uint64(next(3))
			holder := next(4)
			version := Version{uint64(next(5)), uint64(next(20))}
			claim := Claim{Resource: "db", Wants: next(3000), Version: version, Holds: next(2000), Left: time.Duration(next(40)) * time.Second}
			claim.Release = next(20) == 1
			caller := [...]string{"", "low", "w7", "server"}[holder]
			if holder == 3 {
				for range next(5) {
					claim.Curve = append(claim.Curve, Bucket{int(next(9)), next(1000), next(5000)})
				}
				claim.Learning = next(2) == 1
			}
			report := &Report{Holder: fmt.Sprint(holder), Seq: seq, Claims: []Claim{claim}, Acks: []Ack{{"db", version, next(2000)}}}
			if err := n.server.Receive(w.now, caller, report, &n.out); err != nil {
				continue
			}
			w.consistent()
			n.server.Advance(w.now+headgate.Instant(next(100))*ms, &n.out)
			w.consistent()
			n.out.Reset()
		}
	})
}
