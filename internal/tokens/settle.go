package tokens

// API is a preset: where the answers of an API state their usage, what its requests tell before, and how its clients read errors.
type API uint8

const (
	// NoAPI is no preset: Settle.JSON or Settle.Headers say where the cost is.
	NoAPI API = iota
	// Auto takes the API of each request from its path and the content type of its answer.
	Auto
	// OpenAI is the API of OpenAI and of all that answer as it does.
	OpenAI
	// Anthropic is the Messages API.
	Anthropic
	// Gemini is generateContent and streamGenerateContent.
	Gemini
	// Bedrock is Converse and InvokeModel, with their streams.
	Bedrock
	// Ollama is the native API of Ollama.
	Ollama
	// Cohere is version 2 of Cohere's API.
	Cohere
)

// apiNames has the words of configurations, in the order of the constants.
var apiNames = [...]string{"", "auto", "openai", "anthropic", "gemini", "bedrock", "ollama", "cohere"}

// String gives the word that configurations use.
func (a API) String() string { return apiNames[min(int(a), len(apiNames)-1)] }

// APIs lists the presets, in the order of the constants.
func APIs() []API { return []API{Auto, OpenAI, Anthropic, Gemini, Bedrock, Ollama, Cohere} }

// Weight is the cost of one token, or of one of another number, in millionths of a unit: 1_000_000 is one unit.
type Weight int64

// One is the Weight of one unit.
const One Weight = 1_000_000

// Counts are the tokens of one request, by kind. Kinds do not overlap, whatever the API states: Input is without Cached and Written,
// and Output has the tokens of reasoning.
type Counts struct {
	Input, Cached, Written, Output int64
	// Total is the total that the answer states; 0 if it states none.
	Total int64
}

// Weights are the costs of one token of each kind.
type Weights struct{ Input, Cached, Written, Output Weight }

// Price is the weights of the models that a pattern matches.
type Price struct {
	// Model is a glob: * stands for any characters.
	Model   string
	Weights Weights
}

// Merge says which of the numbers counts that a stream states at one place.
type Merge uint8

const (
	// Max is the highest number.
	Max Merge = iota
	// Last is the last number.
	Last
	// Sum is the sum of all numbers.
	Sum
)

// mergeNames has the words of configurations, in the order of the constants.
var mergeNames = [...]string{"max", "last", "sum"}

// String gives the word that configurations use.
func (m Merge) String() string { return mergeNames[min(int(m), len(mergeNames)-1)] }

// Merges lists the ways to merge, in the order of the constants.
func Merges() []Merge { return []Merge{Max, Last, Sum} }

// Field is a number in the JSON of an answer, or a header, with its weight.
type Field struct {
	// Name is the name in the configuration, or the name of the header.
	Name string
	// Paths are the places of the number, like usage.prompt_tokens. The names of a path are separated by dots. A header has none.
	Paths  []string
	Weight Weight
}

// Settle says where an answer states the real cost of its request: one of API, JSON and Headers is set.
type Settle struct {
	API API
	// JSON are the numbers of a JSON answer, of an event stream, of lines of JSON or of an AWS event stream. The cost is their
	// weighted sum.
	JSON  []Field
	Merge Merge
	// Headers are headers and trailers with numbers. The cost is their weighted sum.
	Headers []Field
	// Weights are the costs of the tokens of an API. The zero Weights are 1 for each, and the cost is then at least the stated total.
	Weights Weights
	// Prices are weights by model, in place of Weights. The pattern "*" is among them. A name has precedence over a pattern, and a long
	// pattern over a short one.
	Prices []Price
}

// Estimate says what a request takes before its answer states the cost.
type Estimate struct {
	// BytesPerToken, Output and Image are what holds until answers have taught better: the bytes of text of one token in
	// millionths, the tokens of an answer whose request does not bound them, and the tokens of one image or file.
	BytesPerToken Weight
	Output, Image int64
	// Fixed keeps these numbers whatever answers state.
	Fixed bool
}
