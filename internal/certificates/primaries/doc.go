// Package primaries collects facts about the certificates of control planes: what tasks on the primaries found, what
// is served, and what the API server reports about the components. It changes only the ConfigMap that has the time
// of the last check for other programs.
package primaries
