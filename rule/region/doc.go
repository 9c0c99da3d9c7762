// Package region tells which country an address is in, by a database of MaxMind's
// format (.mmdb): it is the Regions of a rule.Identity, for rules with key region.
//
// Every database whose records have country.iso_code does: GeoLite2-Country and
// GeoIP2-Country, City and Enterprise. [Open] reads the file whole and keeps it in
// memory, so that a file that is replaced or cut short in place does no harm: a
// mapping would see it change, and end the process. A new file takes a new Open.
//
// [DB.Region] decodes nothing but the code, allocates nothing, and takes a fraction
// of a microsecond. What the database has no two capital letters for is nowhere.
//
// Start with region.go; open.go reads and judges the file.
package region
