// Package view shows the journal and EKCO's status to people and to programs: one sentence for each event, tables,
// trees, JSON and YAML. Texts from the cluster may be hostile, so this package never writes a control character to a
// terminal.
package view
