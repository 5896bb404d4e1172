// Package view shows the journal and EKCO's status to people and to programs:
// one sentence for each event, tables, trees, JSON and YAML. Whatever comes
// from the cluster may be hostile: nothing here lets a control character reach
// a terminal.
package view
