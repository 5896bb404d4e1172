#!/bin/sh
# What exec runs in the tests: a command that does as its first argument says.
case $1 in
echo)
	echo "$POD_NAMESPACE/$POD_NAME/$CONTAINER"
	for arg; do printf '<%s>\n' "$arg"; done
	echo problem >&2
	;;
exit) exit "$2" ;;
kill) kill "-$2" $$ ;;
cat) cat ;;
hang) # with a child, and the ids of both in file $2
	sleep 600 &
	echo $$ $! >"$2.new"
	mv "$2.new" "$2"
	wait
	;;
*)
	echo "no command $1" >&2
	exit 127
	;;
esac
