package guard

import (
	"github.com/headgate/headgate/guard/internal/refusals"
	"github.com/headgate/headgate/guard/internal/wheel"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/internal/tokens"
)

// Clock is the time for waiting requests: that of the machine (MachineClock), or of a simulation. A Clock is safe for
// concurrent use. Now gives the monotonic time since an origin that does not change. Alarm makes an alarm that is not
// set, and that calls its function each time it goes off.
type Clock = wheel.Clock

// Alarm calls its function once, as *time.Timer does. Reset sets it to go off in a time, in place of any time set
// before, and Stop lets a set alarm not go off.
type Alarm = wheel.Alarm

// MachineClock returns the machine's monotonic clock, starting now. A Clock that is made in a testing/synctest bubble
// uses the bubble's clock, and must stay in the bubble.
func MachineClock() Clock { return wheel.Machine() }

// Calendar says where the windows of calendar periods begin: the time zone of the days, the first day of the week,
// and the day on which months and years begin. It is comparable. The zero Calendar is UTC, weeks from Sunday and months
// from the first day.
type Calendar = calendar.Settings

// LeaseTable has the capacity leases that rules spend. Package client/lease makes one.
type LeaseTable = bucket.Table

// DomainIndex finds the limit of a descriptor in a Domain.
type DomainIndex = domain.Index

// RefusalStats counts what is remembered of refused counters, and what was decided from it.
type RefusalStats = refusals.Stats

// Settle says where an answer states the real cost of its request: see Rule.SettleBody.
type Settle = tokens.Settle

// Estimate says what a request takes before its answer states the cost: see Rule.Estimate.
type Estimate = tokens.Estimate

// API is a preset of a Settle: where the answers of an API state their usage.
type API = tokens.API

// The presets.
const (
	// AutoAPI takes the API of each request from its path and the content type of its answer.
	AutoAPI API = tokens.Auto
	// OpenAI is the API of OpenAI and of all that answer as it does.
	OpenAI API = tokens.OpenAI
	// Anthropic is the Messages API.
	Anthropic API = tokens.Anthropic
	// Gemini is generateContent and streamGenerateContent.
	Gemini API = tokens.Gemini
	// Bedrock is Converse and InvokeModel, with their streams.
	Bedrock API = tokens.Bedrock
	// Ollama is the native API of Ollama.
	Ollama API = tokens.Ollama
	// Cohere is version 2 of Cohere's API.
	Cohere API = tokens.Cohere
)

// TokenWeight is the cost of one token in millionths of a unit: OneUnit is one unit.
type TokenWeight = tokens.Weight

// OneUnit is the TokenWeight of one unit.
const OneUnit TokenWeight = tokens.One

// TokenWeights are the costs of one token of each kind.
type TokenWeights = tokens.Weights

// TokenPrice is the TokenWeights of the models that a pattern matches.
type TokenPrice = tokens.Price

// AnswerField is a number in the JSON of an answer, or a header, with its weight.
type AnswerField = tokens.Field

// Merge says which of the numbers counts that a stream states at one place.
type Merge = tokens.Merge

// The ways to merge numbers.
const (
	// MergeMax takes the highest number.
	MergeMax Merge = tokens.Max
	// MergeLast takes the last number.
	MergeLast Merge = tokens.Last
	// MergeSum takes the sum of all numbers.
	MergeSum Merge = tokens.Sum
)
