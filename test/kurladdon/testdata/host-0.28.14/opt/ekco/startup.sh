#!/bin/bash
# Stands for the startup script of 0.28.14.
echo startup
