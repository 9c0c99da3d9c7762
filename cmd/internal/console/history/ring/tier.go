package ring

// Tier is a resolution.
type Tier uint8

// The tiers. Second has 5 minutes, TenSeconds an hour, and FiveMinutes a day.
const (
	Second Tier = iota
	TenSeconds
	FiveMinutes
	tierCount
)

const (
	secondSteps  = 300
	tenSteps     = 360
	fiveSteps    = 288
	steps        = secondSteps + tenSteps + fiveSteps
	tenSeconds   = 10
	fiveMinutes  = 300
	day          = 24 * 60 * 60
	secondColumn = 0
	tenColumn    = secondSteps
	fiveColumn   = tenColumn + tenSteps
)

// SeriesBytes is the memory of the values of a series.
const SeriesBytes = steps * 4

var tierNames = [tierCount]string{"1s", "10s", "5m"}

// String is the name in calls: 1s, 10s or 5m.
func (t Tier) String() string {
	if t < tierCount {
		return tierNames[t]
	}
	return ""
}

// ParseTier reads a name of String.
func ParseTier(name string) (Tier, bool) {
	for t := range tierCount {
		if tierNames[t] == name {
			return t, true
		}
	}
	return 0, false
}

// Step is the length of a step in seconds.
func (t Tier) Step() int64 {
	switch t {
	case TenSeconds:
		return tenSeconds
	case FiveMinutes:
		return fiveMinutes
	default:
		return 1
	}
}

// Steps is the number of steps that the Ring keeps, the present one included.
func (t Tier) Steps() int64 {
	switch t {
	case TenSeconds:
		return tenSteps
	case FiveMinutes:
		return fiveSteps
	default:
		return secondSteps
	}
}

// column is the place of the step with a second in a chunk.
func (t Tier) column(second int64) int64 {
	switch t {
	case TenSeconds:
		return tenColumn + second/tenSeconds%tenSteps
	case FiveMinutes:
		return fiveColumn + second/fiveMinutes%fiveSteps
	default:
		return secondColumn + second%secondSteps
	}
}

// seriesBytes is the memory of a series beside its values: the Series, its name of up to 192 bytes, and its place.
const seriesBytes = 512

// Bytes is the most memory of a Ring with places for a number of series.
func Bytes(series int) int64 {
	if series == 0 {
		return 0
	}
	const page = 8 << 10 // Go allocates whole pages for a chunk.
	chunks := (int64(series) + Extra + lanes - 1) / lanes
	return chunks*((SeriesBytes*lanes+page-1)/page*page) + (int64(series)+Extra)*seriesBytes
}
