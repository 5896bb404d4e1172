#!/bin/bash
# kURL's containerd add-on runs this script before it replaces Docker. If the script is missing or fails, the upgrade ends.
echo "EKCO has not drained this node: this add-on does not have the services that drain a node before a reboot"
