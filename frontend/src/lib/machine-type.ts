/** "Xeon 8481C, KVM" of "Intel(R) Xeon(R) Platinum 8481C, KVM": what tells machine types apart fits a table's cell. */
export function shortMachineType(machineType: string | null): string {
  return (
    machineType
      ?.replaceAll(/\((?:R|TM)\)/g, "")
      .replace(/ CPU @ [\d.]+GHz/, "")
      .replaceAll(/\b(?:Intel|Platinum|Gold|Silver|Bronze|Processor)(?=\s|$)/g, "")
      .replaceAll(/\s+(?=,|\s|$)/g, "")
      .trim() || "unknown"
  );
}
