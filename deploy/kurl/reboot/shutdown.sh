#!/bin/bash
# kURL's containerd add-on runs this script before it replaces Docker. If the script is missing or fails, kURL ends the upgrade.
echo "EKCO does not drain this node: the add-on does not have the services that drain a node before a reboot"
