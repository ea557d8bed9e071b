#!/usr/bin/env bash
# A sweep as a SLURM job array: every job does its share of the batches and writes them into the same folder.
#   sbatch plans/slurm_array.sh plans/flock_phases.toml /scratch/$USER/flock_phases
# A job that is stopped or lost leaves finished batches behind; submitting the array again does what is missing.
#SBATCH --job-name=policychord
#SBATCH --array=0-19
#SBATCH --cpus-per-task=4
#SBATCH --time=02:00:00
set -euo pipefail
plan=$1
folder=$2
policychord sweep run "$plan" --out "$folder" \
    --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --jobs "$SLURM_CPUS_PER_TASK"
