package compensate

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
)

// IsOutside reports whether an error is an EdgeError: the clock of a store is outside of the edges of some groups, which have counted
// nothing. The other groups are decided.
func IsOutside(err error) bool {
	_, is := errortype.As[*headgate.EdgeError](err)
	return is
}

// Undecide sets decisions that do not exist, so that no request passes.
func Undecide(decisions []headgate.Decision) {
	for i := range decisions {
		decisions[i] = headgate.Undecided()
	}
}
