package script

import (
	_ "embed"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// shebang lets a script of Redis 7 reach keys of several slots. Older servers do not compile it.
const shebang = "#!lua flags=allow-cross-slot-keys\n"

var (
	//go:embed lua/across.lua
	luaAcross string
	//go:embed lua/look.lua
	luaLook string
)

// DecideAcross gives Decide for one node of a Redis Cluster: the keys of the batch may lie in any
// slots that the node has, and travel as the last arguments (ArgsAcross). All are read before
// anything is written, so a call that is answered APART has counted nothing. Keep what it gives.
func DecideAcross() Script {
	s := decide(luaAcross+"\n"+luaBegin, luaLook)
	return named(shebang + s.Text)
}

// FitsAcross reports whether a policy can travel with DecideAcross. A log that may have a list
// cannot: a list that has moved without its state would be found when others are written.
func FitsAcross(p *Plan) bool { return !p.needsList() }

// ArgsAcross gives the arguments of a call of DecideAcross, which has no keys.
func (b *Batch) ArgsAcross(now headgate.Instant, slack time.Duration) []string {
	args := b.Args(now, slack)
	return append(args, b.Keys()...)
}

// Apart reads the error of a call of DecideAcross that has counted nothing: a state could not be
// reached. place is nil if none is to blame.
func (b *Batch) Apart(text string) (place *Place, why string, ok bool) {
	rest, ok := strings.CutPrefix(text, "APART ")
	if !ok {
		return nil, "", false
	}
	number, why, _ := strings.Cut(rest, " ")
	if i, err := strconv.Atoi(number); err == nil && i >= 1 && i <= len(b.states.list) {
		place = &b.states.list[i-1].place
	}
	return place, why, true
}
