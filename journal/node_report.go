package journal

// ActionReportNode is the kind of action that has a program look at a node and report what
// it finds. It changes nothing there.
const ActionReportNode ActionKind = "report-node"
