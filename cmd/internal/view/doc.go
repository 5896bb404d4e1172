// Package view shows the journal and EKCO's status to persons and programs: one sentence for each event, tables, trees,
// JSON and YAML. It never writes a control character to a terminal, because texts from the cluster may be hostile.
package view
