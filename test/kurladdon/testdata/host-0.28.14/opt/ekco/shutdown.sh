#!/bin/bash
# Stands for the shutdown script of 0.28.14.
echo shutdown
