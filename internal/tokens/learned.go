package tokens

import (
	"sync"

	"github.com/headgate/headgate"
)

// What an Estimate starts with if it does not say so.
const (
	startBytesPerToken = 4 * One
	startOutput        = 500
	startImage         = 1000
)

// The bounds of what is learned.
const (
	leastBytesPerToken, mostBytesPerToken = One / 4, 16 * One
	// weightOfNew is the part of a new answer in the moving averages: 1/16.
	weightOfNew = 16
)

// Learned has what the answers of one rule have taught: the bytes of a token, and the tokens of an answer. The zero Learned knows
// nothing, and is safe for concurrent use.
type Learned struct {
	mu            sync.Mutex
	bytesPerToken Weight // 0: unknown
	output        Weight // tokens in millionths; 0: unknown
}

// Cost estimates the cost of a request in units before its answer states the cost: at least 1, and at most most, the units that one
// request may take, so that an estimate alone never refuses a fresh key. A b that is nil has no text, and its answer no bound.
func (l *Learned) Cost(s *Settle, e *Estimate, b *headgate.Body, model string, most int64) int64 {
	c := l.Counts(e, b)
	if s == nil || s.API == NoAPI {
		return between(add(c.Input, c.Output), most)
	}
	return between(s.Cost(&c, model), most)
}

// Counts estimates the tokens of a request.
func (l *Learned) Counts(e *Estimate, b *headgate.Body) (c Counts) {
	ratio, output := l.values(e)
	if b == nil {
		b = &headgate.Body{}
	}
	image := e.Image
	if image == 0 {
		image = startImage
	}
	c.Input = add(perToken(b.Text, ratio), times(b.Images, image))
	c.Output = output
	if b.Output > 0 {
		c.Output = b.Output
	}
	c.Output = times(c.Output, max(b.Answers, 1))
	return c
}

// Input estimates the cost of the input of a request alone, and Output that of n tokens of the answer, for answers that end early.
func (l *Learned) Input(s *Settle, e *Estimate, b *headgate.Body, model string) int64 {
	c := l.Counts(e, b)
	c.Output = 0
	return s.Cost(&c, model)
}

// Output is the cost of n tokens of an answer.
func (s *Settle) Output(n int64, model string) int64 { return s.Cost(&Counts{Output: n}, model) }

// values gives the bytes of a token, and the tokens of an answer.
func (l *Learned) values(e *Estimate) (ratio Weight, output int64) {
	ratio, output = e.BytesPerToken, e.Output
	if ratio == 0 {
		ratio = startBytesPerToken
	}
	if output == 0 {
		output = startOutput
	}
	if e.Fixed || l == nil {
		return ratio, output
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytesPerToken > 0 {
		ratio = l.bytesPerToken
	}
	if l.output > 0 {
		output = max((int64(l.output)+int64(One)-1)/int64(One), 1)
	}
	return ratio, output
}

// Add learns from the answer to a request: its counts must be final. Requests with images or with a body that was read in part teach
// no bytes of a token.
func (l *Learned) Add(b *headgate.Body, c *Counts) {
	in := add(c.Input, add(c.Cached, c.Written))
	answers := int64(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if b != nil {
		answers = max(b.Answers, 1)
		if b.Text > 0 && b.Text <= maxLearned && b.Images == 0 && !b.Part && in > 0 {
			l.bytesPerToken = average(l.bytesPerToken, max(min(Weight(b.Text)*One/Weight(in), mostBytesPerToken), leastBytesPerToken))
		}
	}
	if c.Output > 0 {
		l.output = average(l.output, Weight(min(c.Output/answers, maxLearned))*One)
	}
}

// maxLearned bounds what one answer teaches, in bytes and in tokens.
const maxLearned = 1 << 30

// average moves an average to a new value. The first value is taken as it is.
func average(old, value Weight) Weight {
	if old == 0 {
		return value
	}
	return max(old+(value-old)/weightOfNew, 1)
}

// perToken gives the tokens of text, rounded up.
func perToken(text int64, ratio Weight) int64 {
	text = min(text, maxLearned)
	return (text*int64(One) + int64(ratio) - 1) / int64(ratio)
}

// times multiplies, up to headgate.MaxUnits.
func times(a, b int64) int64 {
	if a > 0 && b > headgate.MaxUnits/a {
		return headgate.MaxUnits
	}
	return a * b
}

// between keeps an estimate between 1 and most.
func between(v, most int64) int64 { return max(min(v, most), 1) }
