package script

import (
	_ "embed"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// shebang allows a script of Redis 7 to use keys of several slots. Older servers do not compile it.
const shebang = "#!lua flags=allow-cross-slot-keys\n"

var (
	//go:embed lua/across.lua
	luaAcross string
	//go:embed lua/look.lua
	luaLook string
)

// DecideAcross gives Decide for one node of a Redis Cluster. The keys of the batch may be in any slots
// of the node, and are the last arguments (ArgsAcross). The script reads all states before it writes
// any, so a call with the answer APART has counted nothing. Call DecideAcross once and keep the result.
func DecideAcross() Script {
	s := decide(luaAcross+"\n"+luaBegin, luaLook)
	return named(shebang + s.Text)
}

// FitsAcross reports whether DecideAcross can decide a policy. It cannot decide a log that may have a
// list: the script would find a moved list only after it has written other states.
func FitsAcross(p *Plan) bool { return !p.needsList() }

// ArgsAcross gives the arguments of a call of DecideAcross, which has no keys.
func (b *Batch) ArgsAcross(now headgate.Instant, slack time.Duration) []string {
	args := b.Args(now, slack)
	return append(args, b.Keys()...)
}

// Apart reads the error of a call of DecideAcross that has counted nothing, because a state could
// not be reached. place is that state, or nil if it is unknown.
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
