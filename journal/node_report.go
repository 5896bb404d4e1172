package journal

// ActionReportNode runs a program on a node that reports facts. It changes nothing there.
const ActionReportNode ActionKind = "report-node"
